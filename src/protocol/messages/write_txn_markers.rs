//! WriteTxnMarkers (key 27).

use crate::protocol::message::message;

message! {
    WriteTxnMarkersRequest {
        markers: Vec<WritableTxnMarker>;
    }

    WritableTxnMarker {
        producer_id: i64;
        producer_epoch: i16;
        transaction_result: bool;
        topics: Vec<WritableTxnMarkerTopic>;
        coordinator_epoch: i32;
        transaction_version: i8, in 2..;
    }

    WritableTxnMarkerTopic {
        name: String;
        partition_indexes: Vec<i32>;
    }

    WriteTxnMarkersResponse {
        markers: Vec<WritableTxnMarkerResult>;
    }

    WritableTxnMarkerResult {
        producer_id: i64;
        topics: Vec<WritableTxnMarkerTopicResult>;
    }

    WritableTxnMarkerTopicResult {
        name: String;
        partitions: Vec<WritableTxnMarkerPartitionResult>;
    }

    WritableTxnMarkerPartitionResult {
        partition_index: i32;
        error_code: i16;
    }
}
