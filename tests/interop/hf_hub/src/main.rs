//! Reads from `wfs serve` with the crate hf-hub: `hub-client REPOSITORY FILE...` prints the commit of the model, a line
//! for the name of each of its files, and the paths in the cache of those it downloads.
use hf_hub::api::sync::{ApiBuilder, ApiError};

fn main() -> Result<(), ApiError> {
    let mut arguments = std::env::args().skip(1);
    let api = ApiBuilder::from_env().with_progress(false).with_token(std::env::var("HF_TOKEN").ok()).build()?;
    let repository = api.model(arguments.next().unwrap_or_default());
    let info = repository.info()?;
    println!("commit {}", info.sha);
    for file in info.siblings {
        println!("file {}", file.rfilename);
    }
    for name in arguments {
        println!("path {}", repository.get(&name)?.display());
    }
    Ok(())
}
