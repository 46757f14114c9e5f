//! The table of error codes of this crate: what each one means, and what to do about it.
//!
//! Numbers never change their meaning. `H01` names, paths and arguments; `H02` the network and the
//! protocol; `H03` integrity; `H04` packages; `H05` the embedded hub; `H06` running modules.

/// The documentation of one error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CodeDoc {
    /// The code, such as `H0301`.
    pub code: &'static str,
    /// What went wrong, in one line.
    pub title: &'static str,
    /// Why it is an error and how to get past it.
    pub explanation: &'static str,
}

macro_rules! codes {
    ($($name:ident $code:literal $title:literal $explanation:literal;)*) => {
        /// The codes, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $(#[doc = concat!($code, ": ", $title)] $name,)*
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// What this code means.
            pub fn doc(self) -> &'static CodeDoc {
                match self {
                    $(Code::$name => &CodeDoc { code: $code, title: $title, explanation: $explanation },)*
                }
            }
        }
    };
}

codes! {
    RepoId "H0101" "this is not a repository id"
        "A repository is named OWNER/NAME. Each half holds letters, digits, `-`, `_` and `.`, does not start or end with `-` or `.`, \
         and does not contain `--` or `..`; the name does not end in `.git`; together they are at most 96 characters.";
    Revision "H0102" "this is not a revision"
        "A revision is a version (`v1`, or `--version 1`), a branch or tag name, or a commit of 40 hexadecimal digits. Branch names follow \
         git's rules: no spaces, no `..`, none of `~ ^ : ? * [ \\`, no leading or trailing `/`.";
    Path "H0103" "this path may not be used in a repository"
        "Paths in a repository are relative and use `/`. Empty segments, `.`, `..`, `.git`, backslashes, control characters and drive \
         letters are refused, so that no repository can write outside its own folder. A hub that lists such a path is broken or hostile: \
         nothing was written.";
    Endpoint "H0104" "this is not the address of a hub"
        "HF_ENDPOINT must be an http or https URL with a host, such as https://huggingface.co or http://127.0.0.1:8000.";
    Token "H0105" "the access token cannot be used"
        "A token is one line of visible ASCII characters. It is read from HF_TOKEN, else from the file HF_TOKEN_PATH, else from \
         $HF_HOME/token.";
    TokenOverHttp "H0106" "the access token would travel unencrypted"
        "The hub's address is plain http and not this machine, so anyone on the way could read your token. Use https, or pass \
         --allow-http-token if the network is yours.";
    UnknownCode "H0107" "there is no such error code"
        "Codes are H and four digits for packages and hubs, K and four digits for kernels and their compiler. `kernels-cli explain` without \
         a code lists them all.";
    Arguments "H0108" "the arguments contradict each other"
        "A version can be given once: as `--version 1`, as `--revision REV`, or in the name as OWNER/NAME@v1. With --locked it comes from the \
         lock file.";
    Io "H0109" "a file could not be read or written"
        "The operating system refused it; the message names the file and its reason. Check the path, its permissions and the free space.";
    LockFile "H0110" "the lock file is not valid"
        "kernels.lock is a list of kernels with the commit that each is locked to, as `kernels lock` of Python writes it. The message names \
         the place. `kernels-cli lock` writes it anew.";
    Project "H0111" "pyproject.toml does not name kernels to lock"
        "The table [tool.kernels.dependencies] holds a line \"OWNER/NAME\" = VERSION for each kernel, with a whole number as version.";
    Target "H0112" "the folder is in use"
        "`--to` writes a new folder, or an empty one: what is there is not mixed with a kernel, and not removed.";
    Key "H0113" "this is not a key"
        "A public key is `ed25519:` and 44 characters of base64; a secret key is a PKCS#8 file, as `kernels-cli keygen` and \
         `openssl genpkey -algorithm ed25519` write it. The file of trusted keys holds a list of public keys for each owner, and sigstore \
         identities, each with its issuer and the text of a trusted_root.json.";
    Exposed "H0114" "other users may read or write this file"
        "Keys decide what is trusted, so their files are for your eyes and hands alone: `chmod 600 FILE`.";

    Unreachable "H0201" "the hub cannot be reached"
        "The connection failed or timed out, also after retries. Check HF_ENDPOINT and the network. With HF_HUB_OFFLINE=1 only the local \
         cache is used.";
    RepoNotFound "H0202" "the repository does not exist"
        "The hub does not have this repository, or hides it from you: private repositories look missing without a token that may read them.";
    RevisionNotFound "H0203" "the version or revision does not exist"
        "Versions are branches named v1, v2, ... `kernels-cli versions OWNER/NAME` lists those that exist.";
    NotAllowed "H0204" "the hub refuses access"
        "The token is missing, wrong, or not allowed to do this. Set HF_TOKEN to one that has write access to the owner's repositories.";
    Status "H0205" "the hub answered with an error"
        "The message holds the hub's status and words. Errors of the server (5xx) and rate limits (429) were retried first.";
    Protocol "H0206" "the answer is not what the protocol says"
        "The hub answered with something else than the JSON, header or listing that this request returns. HF_ENDPOINT may point at a web page, \
         a proxy or an incompatible server.";
    TooLarge "H0207" "the answer is larger than allowed"
        "The hub sent more than it announced, or more than a listing or a package may hold. The download was stopped and discarded.";
    Redirect "H0208" "the hub redirects to a place that is not trusted"
        "Redirects must lead to an http or https address, never from https to http, and at most five in a row. The token is never sent to \
         another host than the hub's.";
    Moved "H0209" "somebody else published at the same time"
        "The branch has a newer commit than the one this upload was compared with. Nothing was written: run the command again.";
    FileNotFound "H0210" "the repository has no such file"
        "The file is not part of this revision. Another version may have it, or its name is spelled in another way.";
    Offline "H0211" "offline, and not in the cache"
        "HF_HUB_OFFLINE is set, so only the local cache is used, and it does not hold this revision whole. Run `kernels-cli get` once with \
         network access, or unset HF_HUB_OFFLINE.";
    CreationGated "H0212" "the hub does not let you create kernel repositories"
        "huggingface.co gives this right on request: ask for it in the settings of your user or organization. Until then publish to your \
         own hub, started with `kernels-cli serve`.";
    Untrusted "H0213" "the publisher is not trusted"
        "A kernel is code that runs in your process. Kernels of publishers that the hub does not call trusted are locked only if you name \
         them, after a look at what they hold: `--allow OWNER/NAME`, or `--allow OWNER` for all of an owner's.";
    Unchanged "H0214" "there is nothing to propose"
        "The branch holds exactly these files already, so a pull request would change nothing.";

    Size "H0301" "a file has another size than announced"
        "The hub lists a size for every file, and what arrived is shorter or longer: a broken connection, a proxy that stored an error page, \
         or tampering. The file was discarded.";
    Content "H0302" "a file's content does not match its id"
        "Every file is hashed while it arrives (git's SHA-1, or SHA-256 for large files) and compared with the id that the hub listed. They \
         differ, so the file was discarded.";
    ObjectId "H0303" "this is not an object id"
        "Commits, files and ETags are named by 40 or 64 hexadecimal digits. Anything else could name a file outside the cache, and is refused.";
    Digest "H0304" "the package does not match its digest"
        "metadata.json holds the SHA-256 of every file of its variant. A file is missing, is not listed, or differs: the package was changed \
         after it was built. Build it again, or ask its publisher.";
    Module "H0305" "a module does not match index.json"
        "index.json holds size and SHA-256 of every compiled module. One is missing or differs. Build the package again.";
    Identity "H0306" "the package is not the one that was asked for"
        "The version inside metadata.json must be the version of the branch, and all variants must agree on name and version.";
    CacheDamaged "H0307" "a file in the cache is damaged"
        "A cached file no longer matches the id in its name. Online, `kernels-cli get` fetches it again; offline it is an error.";
    Contradiction "H0308" "the hub contradicts its own listing"
        "The commit or ETag of the answer is not the one that the hub listed for the file. A proxy may serve stale content.";
    Listing "H0309" "the list of files is not consistent"
        "A path is listed twice, or is a file and a folder at once, or differs from another only by case. Nothing was written.";
    Drift "H0310" "the lock file does not say what is wanted"
        "kernels.lock, pyproject.toml and what the kernels depend on must agree: with --locked nothing else is fetched than what the lock \
         file pins. The message names what differs. `kernels-cli lock` brings the lock file up to date.";
    Signature "H0311" "the package is not signed as it must be"
        "A signature covers the bytes of metadata.json, and with its digest every file of the variant. This one is missing, is of other \
         bytes, or is of a key that you do not trust for the owner. Once you trust a key of an owner, every package of theirs must be \
         signed with one that you trust. A sigstore bundle (metadata.json.sigstore) must prove, from the trusted root that you gave, who \
         signed and when: the message names the first thing that it does not prove. `kernels-cli trust ls` shows keys and identities.";
    Bundle "H0312" "the bundle is not valid"
        "A bundle is a tar file with bundle.json first and then each content that it lists, once, under its id. This file is something \
         else, or was cut, or holds what it does not list. Nothing of it was taken into use: ask for it again.";

    BuildToml "H0401" "build.toml is not valid"
        "The file follows kernel-builder's edition 5 with one table of ours, [tessera]. Unknown keys are errors, so that a typo is not \
         silently ignored.";
    Name "H0402" "this name cannot be used for a kernel"
        "A kernel's name is lower-case letters, digits and `-`, starts with a letter and does not end with `-`. Its id in metadata.json is \
         `_NAME_BACKEND_HASH`: Python registers the module under it, so an id such as `json` would replace a module of the standard library.";
    UnknownOp "H0403" "there is no such op"
        "`ops` in the table [tessera] of build.toml names operations of the `kernels` crate; the message lists those that there are.";
    Metadata "H0404" "metadata.json is not valid"
        "Every variant has a metadata.json, which the Python package `kernels` reads before it loads the variant. A field is missing or has \
         a value that `kernels` would not accept. `kernels-cli build` writes the file.";
    Index "H0405" "index.json is not valid"
        "index.json lists a package's ops and their compiled modules: interfaces, demands on dims, operands, sizes and hashes. The message \
         names the place in it. `kernels-cli build` writes the file.";
    PythonRules "H0406" "a Python file breaks the rules of kernel packages"
        "A package is imported under a generated name, so its files import each other only relatively (`from . import x`), and \
         `__init__.py` states its public names in one literal `__all__`.";
    File "H0407" "this file may not be part of a package"
        "Bytecode (`*.pyc`, `__pycache__`), symbolic links, devices and very large files are refused: they would be executed or uploaded \
         without anybody having read them.";
    Version "H0408" "the package has another version"
        "The version in build.toml decides. Change it there and build again, or publish under that version.";
    NoVariant "H0409" "there is no such build variant"
        "A package keeps one folder for each variant in build/: torch-tpu, torch-cpu, torch-universal. `kernels-cli build` makes them.";
    Kernel "H0410" "the kernel does not compile"
        "Recording, checking or compiling the kernel of an op failed. The report has a code of its own and names the line of the kernel.";
    Tpu "H0411" "the TPU compiler refuses a module"
        "The real TPU compiler, libtpu, runs on this machine without a TPU and compiles every module for every TPU generation. No generation \
         accepts this one, or libtpu cannot be found or run; the report says which.";
    NoModule "H0412" "no module of this op serves these dims"
        "Each module states its dtypes, its demands on dims and its TPU generations, and none of this op's modules fits the call. The message \
         says of each module why.";

    NoCompiler "H0413" "this program was built without the kernel compiler"
        "`kernels-cli` was built without its default feature `emit`, so it fetches, publishes and serves packages, and cannot build them. \
         Install it with default features, which needs MLIR 22.";
    Unchecked "H0414" "libtpu has not accepted a module"
        "Every module of a published package states the TPU generations whose real compiler accepted it, so that nobody finds out on a TPU. \
         `kernels-cli build` records them unless --no-tpu-check is given. `--allow-unchecked` publishes it all the same.";
    Dirty "H0415" "the sources were not committed"
        "A package that was built from changed files cannot be built again by anybody else, and Python warns when it loads it. Commit, build \
         again and publish, or pass --allow-dirty.";
    Breaks "H0416" "this would break callers of the version"
        "Under a version that exists ops, dtypes, shapes, TPU generations, parameters with defaults and Python names may be added; none may \
         be removed or changed, since programs load the version and expect what it promised. The message names each caller that would fail. \
         Publish it as the next version instead. Version 0 promises nothing.";
    Import "H0417" "Python cannot import the package"
        "The package was imported as `kernels` imports it: alone, under its id. Python's own message follows. Nothing that this package \
         lacks on this machine, such as torch, counts: only errors of its own files do.";

    Root "H0501" "the hub's folder cannot be used"
        "`--root` must be a folder that this user can write, empty or made by `kernels-cli serve`.";
    RootInUse "H0502" "another hub is using this folder"
        "One folder is served by one process. Stop the other one, or choose another --root.";
    Bind "H0503" "the address cannot be listened on"
        "Another program uses the port, or the address is not of this machine. Port 0 lets the system choose a free one.";
    OpenWrites "H0504" "a hub that others can reach needs a token for writes"
        "Pass --token-file: the file is made with a new token if it does not exist. Without one only 127.0.0.1 may be served.";
    Stored "H0505" "the hub's own data are damaged"
        "A stored commit, listing or file cannot be read back as it was written. Restore the folder from a backup.";
    BadRequest "H0506" "the request is not valid"
        "The body, a path or a name in the request breaks the protocol; the message says which.";
    Exists "H0507" "this already exists"
        "A repository, branch or tag of this name exists, and making it again would not say which of the two is meant.";
    Unsupported "H0508" "the embedded hub does not offer this"
        "It serves kernel repositories: branches, tags, commits, files and pull requests. Other kinds of repositories, discussions and \
         Xet are not part of it.";
    Quota "H0509" "the owner's quota is used up"
        "The operator of this hub limits how many bytes a user or organisation may store. Delete repositories that are not needed, or ask the \
         operator: `kernels-cli hub owner NAME --quota BYTES` changes the limit.";
    Conflict "H0510" "both sides have changed"
        "A pull request: the branch has changed the same files in another way since it was opened, or it is closed. Open a new one from the \
         branch as it is now. `hub import`: the version has commits that were made on this hub, and those of another hub would hide them. Keep \
         what is published in one place apart from what is imported: under another owner, or on another hub.";
    Account "H0511" "there is no such user or token"
        "`kernels-cli hub token ls` and `kernels-cli hub owner` show what the operator has recorded.";
    Tls "H0512" "the certificate cannot be used"
        "--tls-cert takes a PEM file with the certificate, followed by those that signed it, and --tls-key the PEM file with its private key.";

    ArrayFile "H0601" "this is no array that a kernel takes"
        "Arrays are read from .npy and .safetensors files (name one tensor of several as FILE#TENSOR). Elements are f32, bf16, integers of \
         8 to 32 bits, or bool, little-endian and in C order; NumPy files hold bf16 as `ml_dtypes` saves it.";
    RunArguments "H0602" "the arguments do not say what to run"
        "Name one op (--op) of a package or one call (--call) of a StableHLO text where there are several; give --result-type for a module \
         by itself, which does not hold the sizes of its results; name no more files than the kernel has results.";
    Differs "H0603" "a result is not what was expected"
        "The kernel ran, and at least one element is further from --expect than atol + rtol * |expected|, or its shape differs. The TPU \
         multiplies f32 in one bfloat16 pass unless a module asks for more; --exact multiplies as the CPU does.";
    Refused "H0604" "the module cannot be read or run"
        "The report below the message has a code of its own and names the operation, and the line of the kernel where the module holds it.";
}

/// What `code` (such as `H0301`, in any case) means, or `None` if this crate has no such code.
pub fn explain(code: &str) -> Option<&'static CodeDoc> {
    Code::ALL.iter().map(|c| c.doc()).find(|doc| doc.code.eq_ignore_ascii_case(code))
}
