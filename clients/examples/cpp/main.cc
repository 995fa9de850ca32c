// Lists the studies of a server: a minimal call.

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

#include <grpcpp/grpcpp.h>

#include "dpareto/v1/study_service.grpc.pb.h"

int main() {
  const char* address = std::getenv("DPARETO_SERVER");
  auto channel = grpc::CreateChannel(address != nullptr ? address : "127.0.0.1:8321",
                                     grpc::InsecureChannelCredentials());
  auto studies = dpareto::v1::StudyService::NewStub(channel);

  dpareto::v1::ListStudiesRequest request;
  do {
    grpc::ClientContext context;  // one for every call
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
    dpareto::v1::ListStudiesResponse page;
    const grpc::Status status = studies->ListStudies(&context, request, &page);
    if (!status.ok()) {
      std::cerr << "code " << status.error_code() << ": " << status.error_message() << '\n';
      return EXIT_FAILURE;
    }
    for (const auto& study : page.studies()) {
      std::cout << study.name() << ": " << study.trial_counts().succeeded() << " trials succeeded\n";
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
}
