//! The context of a container image with `ptc-compile`, for pipelines: `docker build --tag ptc-compile - < FILE`.

use super::{Package, Release, archive};
use crate::error::Error;

const DOCKERFILE: &str = "\
# An image with ptc-compile and its prebuilt runtime. It builds configs of the mounted folder:
#   docker run --rm --volume \"$PWD:/work\" ptc-compile upstreams.json --locked --output server
FROM debian:trixie-slim
RUN apt-get update \\
 && apt-get install --yes --no-install-recommends ca-certificates \\
 && rm -rf /var/lib/apt/lists/*
COPY usr /usr
WORKDIR /work
ENTRYPOINT [\"ptc-compile\"]
";

pub(super) fn package(release: &Release) -> Result<Package, Error> {
    let name = format!("ptc-compile-{}-container-{}.tar.gz", release.version, release.platform.debian);
    let mut tree = release.tree.below("usr/");
    tree.file("Dockerfile", DOCKERFILE.into());
    let bytes = archive::tar_gz(&tree, false).map_err(Error::writing(&name))?;
    Ok(Package { name, bytes })
}
