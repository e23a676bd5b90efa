mod upstreams {
    ptc_macros::catalog!("configs/shop/upstreams.json", args);
}

fn main() {
    let _ = upstreams::args::shop::GetOrder {};
    let _ = upstreams::args::shop::GetOrder { id: "7" };
}
