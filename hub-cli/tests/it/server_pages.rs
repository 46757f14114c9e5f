//! The pages for people: what they show, and that nothing of a package becomes part of the page.

use hub_cli::Result;
use reqwest::Method;
use serde_json::json;

use crate::raw::{REPO, file, title};
use crate::support::Bench;

impl Bench {
    fn page(&self, path: &str) -> String {
        let answer = self.send(Method::GET, path, "");
        assert_eq!(answer.status(), 200, "{path}");
        assert!(answer.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
        assert!(
            answer.headers()["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'")
        );
        let html = answer.text().unwrap();
        assert!(html.starts_with("<!DOCTYPE html>") && html.contains("<html lang=\"en\">"));
        assert!(!html.contains("<script"), "there are no scripts");
        html
    }
}

/// The text of the first element with this id, without tags.
fn text_of(html: &str, id: &str) -> String {
    let start = html.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no #{id} in {html}"));
    let tag = html[..start].rfind('<').unwrap();
    let name = html[tag + 1..].split([' ', '>']).next().unwrap();
    let body = &html[start + html[start..].find('>').unwrap() + 1..];
    let body = &body[..body.find(&format!("</{name}>")).unwrap()];
    let mut text = String::new();
    let mut inside = true;
    for character in body.chars() {
        match character {
            '<' => inside = false,
            '>' => {
                inside = true;
                text.push(' ');
            }
            _ if inside => text.push(character),
            _ => {}
        }
    }
    text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[test]
fn the_first_page_lists_kernels_and_their_versions() -> Result<()> {
    let bench = Bench::new();
    assert!(bench.page("/").contains("There are no kernels here yet"));
    bench.publish(1, "one")?;
    bench.publish(2, "two")?;
    let private = json!({"type": "kernel", "organization": "acme", "name": "secret", "private": true});
    bench.post("/api/repos/create", private);
    let table = text_of(&bench.page("/"), "kernels");
    assert!(table.contains("acme/toy-kernel") && table.contains("v1") && table.contains("v2"), "{table}");
    assert!(table.contains("KB"), "the size: {table}");
    assert!(table.contains("acme/secret   private"), "{table}");
    assert!(!bench.page("/?search=toy").contains("acme/secret"));
    Ok(())
}

#[test]
fn a_kernel_has_a_snippet_versions_ops_and_generations() -> Result<()> {
    let bench = Bench::new();
    bench.publish(1, "one")?;
    let published = bench.publish(2, "two")?;
    let html = bench.page("/kernels/acme/toy-kernel");
    assert_eq!(
        text_of(&html, "snippet"),
        "from kernels import get_kernel\n\nkernel = get_kernel(\"acme/toy-kernel\", version=2, \
         trust_remote_code=[\"acme/toy-kernel\"])"
    );
    assert!(text_of(&html, "command").ends_with("kernels-cli get acme/toy-kernel@v2"));
    assert!(html.contains(published.commit.as_str()));
    for shown in
        ["Version v1", "Version v2", "torch-tpu", "toy(x: T[m, k]) -&gt; (out: T[m, k])", "v5e", "Copies."]
    {
        assert!(html.contains(shown), "{shown} in {html}");
    }
    // The snippet's newest version first.
    assert!(html.find("Version v2") < html.find("Version v1"));
    let files = bench.page("/kernels/acme/toy-kernel/tree/v2");
    assert!(text_of(&files, "files").contains("build/torch-tpu/index.json"));
    bench.page(&format!("/kernels/acme/toy-kernel/commit/{}", published.commit));
    for missing in
        ["/kernels/acme/absent", "/kernels/acme/toy-kernel/tree/v9", "/kernels/acme/toy-kernel/discussions/1"]
    {
        assert_eq!(bench.send(Method::GET, missing, "").status(), 404, "{missing}");
    }
    Ok(())
}

#[test]
fn what_people_write_stays_text() {
    let bench = Bench::new();
    bench.create();
    let nasty = "<script>alert(1)</script>\"'&";
    let header = json!({"key": "header", "value": {"summary": nasty, "description": nasty}});
    let body = format!("{header}\n{}\n", file("<b>&\".txt", b"x"));
    let path = format!("{REPO}/commit/main?create_pr=1");
    assert_eq!(bench.send(Method::POST, &path, body).status(), 200);
    for page in ["discussions/1", "tree/refs%2Fpr%2F1"] {
        let html = bench.page(&format!("/kernels/acme/toy-kernel/{page}"));
        assert!(html.contains("&lt;script&gt;"), "{html}");
    }
    let html = bench.page("/kernels/acme/toy-kernel");
    assert!(html.contains("Pull requests") && !html.contains("<b>"));
    // A damaged index is no reason not to show the version.
    bench.post(&format!("{REPO}/branch/v1"), json!({}));
    let lines = format!("{}\n{}\n", title(None), file("build/torch-tpu/index.json", b"{]"));
    bench.send(Method::POST, &format!("{REPO}/commit/v1"), lines);
    assert!(bench.page("/kernels/acme/toy-kernel").contains("Version v1"));
    let search = bench.page("/?search=%22%3E%3Cscript%3E");
    assert!(search.contains("&quot;&gt;&lt;script&gt;"), "{search}");
}
