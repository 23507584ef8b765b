use kube::Config;

use super::*;

/// Nobody is asked here, so that nobody has to answer.
fn detection(client: &Client) -> ServerDetection {
    let writer = StatusWriter::new(client.clone(), Duration::from_secs(1), "test");
    let intervals = Intervals { probe: Duration::from_secs(600), version: Duration::from_secs(60) };
    ServerDetection::new(client.clone(), writer, None, intervals, AdvertiseMetrics::default())
}

/// Two API servers of different minds answer at the same moment, in whichever order. Rarely do they meet, hence so often.
#[tokio::test]
async fn a_dropped_mode_stands_against_an_answer_at_the_same_time() {
    let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    for round in 0..20000 {
        let server = detection(&client);
        server.learn(ServerSupport::Keeps, "test");
        std::thread::scope(|scope| {
            scope.spawn(|| server.learn(ServerSupport::Keeps, "test"));
            scope.spawn(|| server.learn(ServerSupport::Drops, "test"));
        });
        assert_eq!(server.known(), ServerSupport::Drops, "round {round}");
    }
}
