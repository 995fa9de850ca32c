//! Lists the studies of a server: a minimal call.

use std::{env, error::Error, time::Duration};

use tonic::{Request, transport::Endpoint};

/// What buf generates: one file a package, which includes its services.
#[allow(clippy::all, clippy::pedantic, dead_code)]
mod dpareto_v1 {
    include!("gen/dpareto/v1/dpareto.v1.rs");
}

use dpareto_v1::{ListStudiesRequest, study_service_client::StudyServiceClient};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::var("DPARETO_SERVER").unwrap_or_else(|_| "127.0.0.1:8321".to_owned());
    let channel = Endpoint::from_shared(format!("http://{address}"))?.connect_lazy();
    let mut studies = StudyServiceClient::new(channel);

    let mut page_token = String::new();
    loop {
        let mut request = Request::new(ListStudiesRequest { page_token, ..Default::default() });
        request.set_timeout(Duration::from_secs(15));
        let page = studies.list_studies(request).await?.into_inner();
        for study in page.studies {
            let succeeded = study.trial_counts.map_or(0, |counts| counts.succeeded);
            println!("{}: {succeeded} trials succeeded", study.name);
        }
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(());
        }
    }
}
