//! DescribeAcls, CreateAcls and DeleteAcls: there is no authorizer, so that there are no ACLs, as with an Apache Kafka that
//! has none. A request with an element that is of the unknown kind (0) is no request there, and closes the connection.

use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, Pending, Start};
use crate::protocol::messages::create_acls::{AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse};
use crate::protocol::messages::delete_acls::{
    DeleteAclsFilter, DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse,
};
use crate::protocol::messages::describe_acls::{DescribeAclsRequest, DescribeAclsResponse};
use crate::protocol::wire::{DecodeError, Reader};
use crate::protocol::{ApiKey, ErrorCode, Request, frame};

pub(super) const DESCRIBE: Handler =
    Handler { api: ApiKey::DescribeAcls, start: |broker, context, body| start(broker, context, body, describe) };
pub(super) const CREATE: Handler =
    Handler { api: ApiKey::CreateAcls, start: |broker, context, body| start(broker, context, body, create) };
pub(super) const DELETE: Handler =
    Handler { api: ApiKey::DeleteAcls, start: |broker, context, body| start(broker, context, body, delete) };

/// Kafka's number for what is not known, of each of the four kinds that an ACL is made of.
const UNKNOWN: i8 = 0;

trait Elements {
    /// Resource type, pattern type, operation and permission of each ACL or filter.
    fn elements(&self) -> Vec<[i8; 4]>;
}

impl Elements for DescribeAclsRequest {
    fn elements(&self) -> Vec<[i8; 4]> {
        vec![[self.resource_type_filter, self.pattern_type_filter, self.operation, self.permission_type]]
    }
}

impl Elements for CreateAclsRequest {
    fn elements(&self) -> Vec<[i8; 4]> {
        let of = |acl: &AclCreation| [acl.resource_type, acl.resource_pattern_type, acl.operation, acl.permission_type];
        self.creations.iter().map(of).collect()
    }
}

impl Elements for DeleteAclsRequest {
    fn elements(&self) -> Vec<[i8; 4]> {
        let of = |filter: &DeleteAclsFilter| {
            [filter.resource_type_filter, filter.pattern_type_filter, filter.operation, filter.permission_type]
        };
        self.filters.iter().map(of).collect()
    }
}

fn start<R: Request + Elements>(
    _: Arc<Broker>,
    context: Context,
    body: Reader,
    answer: fn(&R) -> R::Response,
) -> Result<Start, DecodeError> {
    let request: R = frame::decode(body, R::API.version(context.version))?;
    if request.elements().iter().flatten().any(|element| *element == UNKNOWN) {
        return Err(DecodeError::UnknownElement);
    }
    Ok(Start::Pending(Pending::ready(context.reply::<R>(&answer(&request)))))
}

fn describe(_: &DescribeAclsRequest) -> DescribeAclsResponse {
    DescribeAclsResponse {
        error_code: ErrorCode::SecurityDisabled.code(),
        error_message: Some("No Authorizer is configured on the broker".into()),
        ..Default::default()
    }
}

fn message() -> Option<String> {
    Some("No Authorizer is configured.".into())
}

fn create(request: &CreateAclsRequest) -> CreateAclsResponse {
    let refused = AclCreationResult { error_code: ErrorCode::SecurityDisabled.code(), error_message: message() };
    CreateAclsResponse { results: vec![refused; request.creations.len()], ..Default::default() }
}

fn delete(request: &DeleteAclsRequest) -> DeleteAclsResponse {
    let refused = DeleteAclsFilterResult {
        error_code: ErrorCode::SecurityDisabled.code(),
        error_message: message(),
        ..Default::default()
    };
    DeleteAclsResponse { filter_results: vec![refused; request.filters.len()], ..Default::default() }
}
