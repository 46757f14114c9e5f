//! A source that the rendering tests point at: it has wide characters and a tab.

fn größe(x: In<bf16>, o: Out<f32>, spare: Out<f32>) {
    let été = "日本"; acc[..] += dot_t(x[..], été);
	o[..] = acc[..].exp();
}
