// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/network.h"

#include <absl/synchronization/mutex.h>
#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"
#include "host/grpc/call.h"
#include "host/grpc/kept_channels.h"
#include "host/grpc/poller_hold.h"
#include "host/grpc/questions.h"
#include "host/grpc/socket_options.h"
#include "host/grpc/stream.h"
#include "host/posix/door/descriptors.h"
#include "host/posix/door/door.h"
#include "host/posix/door/listening.h"
#include "host/posix/door/stranger_questions.h"
#include "host/posix/serial_thread.h"

namespace gossamer::host {
namespace {

// The largest message is the largest frame. An attempt to connect over a bad line needs several round trips.
constexpr int kMaxMessageBytes = static_cast<int>(Network::kMaxFrameBytes);
constexpr int kConnectTimeoutMs = 5000;
// A connection carries one stream or one question, which comes at once and stays; so an idle one is of no
// use.
constexpr int kIdleMs = 10'000;
// No node compresses. A small message that unpacks to gigabytes would pass the limit.
constexpr const char* kDecompression = "grpc.per_message_decompression";
// The bytes that gRPC gathers before it writes, of frames that wait behind each other. All that a step's
// exchange has for one peer leaves in one go, with fewer system calls and wake-ups.
constexpr const char* kWriteBuffer = "grpc.http2.write_buffer_size";
constexpr int kGatheredBytes = 256 << 10;

// When calls are cancelled as a server ends. gRPC takes times before 1970, as of time_point::min(), for
// never.
constexpr std::chrono::system_clock::time_point kAtOnce{};

std::string method_of(Lane lane) { return fmt::format("/gossamer.Link/{}", name(lane)); }

class GrpcNetwork final : public RenewableNetwork {
 public:
  GrpcNetwork(std::optional<NetworkCredentials> credentials, NetworkSink sink)
      : secured_(credentials.has_value()),
        credentials_(std::move(credentials)),
        sink_(std::move(sink)),
        questions_(sink_, numbers_) {
    if (credentials_ && credentials_->of_stranger())
      strangers_questions_ = std::make_unique<StrangerQuestions>(*credentials_, sink_);
    // What gRPC would log arrives as an error's text; on stderr it would stand beside no run, node or peer.
    gpr_set_log_function([](gpr_log_func_args*) {});
    // Debian's Abseil looks for cycles among gRPC's locks whenever one is taken, under a lock of its own.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    hold_ = PollerHold::get();  // starts gRPC's threads, which must find both set
  }
  ~GrpcNetwork() override;

  [[nodiscard]] Result<Endpoint> listen(const Endpoint& at, Lane lane) override;
  [[nodiscard]] ConnectionId connect(const Endpoint& to, Lane lane) override;
  void send(ConnectionId connection, Slices frame) override;
  void consumed(ConnectionId connection, std::uint64_t cost) override;
  void close(ConnectionId connection) override;
  [[nodiscard]] QuestionId ask(const Endpoint& to, Question question) override;
  void answer(QuestionId question, Result<std::string> answer) override;
  [[nodiscard]] Result<void> renew(NetworkCredentials credentials) override;

 private:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;
  struct Port;
  // Turns calls to one listening port into connections and questions.
  class Service final : public grpc::CallbackGenericService {
   public:
    Service(GrpcNetwork& network, const Port& port) : network_(network), port_(port) {}
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
      network_.door_now_.load()->shown(port_.door_number, context->peer());
      return network_.accept(context, port_.lane);
    }

   private:
    GrpcNetwork& network_;
    const Port& port_;
  };
  // A server of one listening port. Its certificate is for ever, so each renewal makes another.
  struct Listener {
    std::unique_ptr<Service> service;
    std::shared_ptr<Acceptor> acceptor;
    std::unique_ptr<grpc::Server> server;
  };
  // A listening port, whose connections go to the newest of its servers.
  struct Port {
    explicit Port(Lane its) : lane(its) {}
    const Lane lane;
    std::atomic<std::uint64_t> door_number = 0;
    std::mutex mutex;
    std::shared_ptr<Acceptor> newest;   // guarded by the mutex
    std::deque<Listener> servers = {};  // of listen(), renew() and the destructor alone; the newest last
  };

  grpc::ServerGenericBidiReactor* accept(grpc::GenericCallbackServerContext* context, Lane lane);
  [[nodiscard]] std::shared_ptr<grpc::ServerCredentials> server_credentials() const;
  [[nodiscard]] Result<void> open_door();
  [[nodiscard]] Listener make_listener(const Port& port);
  void retire(Listener listener);
  [[nodiscard]] std::optional<NetworkCredentials> credentials() const {
    const std::lock_guard lock(credentials_mutex_);
    return credentials_;
  }
  struct ChannelUse {
    Lane lane = Lane::kControl;
    int most_received = kMaxMessageBytes;
    std::string name = {};  // the common name that the other end must have; empty for any node of the run
  };
  [[nodiscard]] std::shared_ptr<grpc::Channel> channel_to(const Endpoint& to, const ChannelUse& use) const;
  [[nodiscard]] OutgoingQuestion::Way way_to(const Endpoint& to, const Question& question);
  void free_remains();
  [[nodiscard]] ConnectionId refuse_stranger(const Endpoint& to);
  [[nodiscard]] std::shared_ptr<GrpcStream> find(ConnectionId connection);
  // Makes a stream under a new number; null once the network is ending.
  template <class Stream, class Last>
  [[nodiscard]] std::shared_ptr<Stream> add(std::string where, Last last);

  std::shared_ptr<PollerHold> hold_;  // first: it has the last channel
  const bool secured_;
  mutable std::mutex credentials_mutex_;
  std::optional<NetworkCredentials> credentials_;  // guarded by credentials_mutex_
  const NetworkSink sink_;
  QuestionNumbers numbers_ = 0;
  GrpcQuestions questions_;
  KeptChannels kept_channels_;
  std::unique_ptr<StrangerQuestions> strangers_questions_;  // where this process is a stranger
  std::mutex door_mutex_;                                   // of the next two; taken by listen() and renew()
  std::unique_ptr<Door> door_;                // made before the first listener, and kept behind the last
  std::vector<std::unique_ptr<Port>> ports_;  // used without the mutex by the destructor
  std::unique_ptr<SerialThread> retiring_;    // ends servers; of renew() and the destructor
  std::atomic<Door*> door_now_ = nullptr;     // the same, for any thread

  std::mutex mutex_;
  std::condition_variable all_finished_;
  // Guarded by mutex_.
  bool ending_ = false;
  ConnectionId last_;
  std::map<ConnectionId, std::shared_ptr<GrpcStream>> streams_;
  std::vector<std::shared_ptr<void>> remains_;  // of finished streams, freed on users' threads
};

template <class Stream, class Last>
std::shared_ptr<Stream> GrpcNetwork::add(std::string where, Last last) {
  const std::lock_guard lock(mutex_);
  if (ending_) return nullptr;
  const ConnectionId id = ++last_;
  auto stream = std::make_shared<Stream>(
      id, std::move(where), sink_,
      [this](ConnectionId gone, std::shared_ptr<void> remains) {
        const std::lock_guard guard(mutex_);
        if (remains != nullptr) remains_.push_back(std::move(remains));
        streams_.erase(gone);
        if (streams_.empty()) all_finished_.notify_all();
      },
      std::move(last));
  streams_[id] = stream;
  return stream;
}

GrpcNetwork::~GrpcNetwork() {
  std::vector<std::shared_ptr<GrpcStream>> streams;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (const auto& [id, stream] : streams_) streams.push_back(stream);
  }
  for (const auto& stream : streams) stream->close();
  if (strangers_questions_ != nullptr) strangers_questions_->end();
  questions_.cancel();
  if (door_ != nullptr) door_->end();
  retiring_.reset();  // waits
  for (const auto& port : ports_) {
    for (const Listener& listener : port->servers) listener.server->Shutdown(kAtOnce);
  }
  {
    std::unique_lock lock(mutex_);
    all_finished_.wait(lock, [this] { return streams_.empty(); });
  }
  questions_.end();
  free_remains();
  ports_.clear();
}

void GrpcNetwork::free_remains() {
  questions_.free_remains();
  std::vector<std::shared_ptr<void>> remains;
  const std::lock_guard lock(mutex_);
  remains.swap(remains_);
}

std::shared_ptr<grpc::ServerCredentials> GrpcNetwork::server_credentials() const {
  const auto own = credentials();
  if (!own) return grpc::InsecureServerCredentials();
  // Strangers end here: no byte of theirs behind the handshake is read.
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = own->authority;
  options.pem_key_cert_pairs.push_back({own->key, own->certificate});
  return grpc::SslServerCredentials(options);
}

Result<void> GrpcNetwork::open_door() {
  if (door_ != nullptr) return {};
  want_descriptors();
  auto opened = Door::open(
      {.credentials = credentials(), .limits = door_limits(descriptor_limit()), .sink = sink_}, numbers_);
  if (!opened.ok()) return opened.error();
  door_ = *std::move(opened);
  door_now_ = door_.get();
  return {};
}

GrpcNetwork::Listener GrpcNetwork::make_listener(const Port& port) {
  Listener listener{.service = std::make_unique<Service>(*this, port), .acceptor = {}, .server = {}};
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument("grpc.max_concurrent_streams", 1);
  builder.AddChannelArgument("grpc.server_handshake_timeout_ms", kConnectTimeoutMs);
  builder.AddChannelArgument("grpc.max_connection_idle_ms", kIdleMs);
  builder.AddChannelArgument(kDecompression, 0);
  builder.AddChannelArgument(kWriteBuffer, kGatheredBytes);
  // The door listens, and hands sockets over.
  listener.acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, server_credentials());
  builder.RegisterCallbackGenericService(listener.service.get());
  listener.server = builder.BuildAndStart();
  return listener;
}

Result<Endpoint> GrpcNetwork::listen(const Endpoint& at, Lane lane) {
  CHECK(strangers_questions_ == nullptr);
  const std::lock_guard door_lock(door_mutex_);
  const Error cannot{.where = to_string(at), .what = "cannot listen", .fix = "look at the certificate"};
  if (!open_door().ok()) return cannot;
  auto listening = listen_at(at, lane);
  if (!listening.ok()) return listening.error();
  auto made = std::make_unique<Port>(lane);
  Port& port = *made;
  Listener listener = make_listener(port);
  if (listener.server == nullptr) return cannot;
  const Endpoint bound = listening->at;
  port.newest = listener.acceptor;
  port.servers.push_back(std::move(listener));
  ports_.push_back(std::move(made));
  port.door_number = door_->serve(*std::move(listening), lane, [&port](int socket) {
    Acceptor::NewConnectionParameters connection;
    connection.fd = socket;
    const std::lock_guard lock(port.mutex);
    port.newest->HandleNewConnection(&connection);
  });
  return bound;
}

Result<void> GrpcNetwork::renew(NetworkCredentials credentials) {
  CHECK(secured_ && strangers_questions_ == nullptr && !credentials.of_stranger());
  const std::lock_guard door_lock(door_mutex_);
  if (door_ != nullptr) {
    if (auto shown = door_->renew(credentials); !shown.ok()) return shown;
  }
  {
    const std::lock_guard lock(credentials_mutex_);
    credentials_ = std::move(credentials);
  }
  kept_channels_.clear();
  for (const auto& port : ports_) {
    Listener listener = make_listener(*port);
    if (listener.server == nullptr) return Error{.what = "cannot serve with the new certificate"};
    {
      const std::lock_guard lock(port->mutex);
      port->newest = listener.acceptor;
    }
    port->servers.push_back(std::move(listener));
    if (port->servers.size() <= kKeptRenewals) continue;
    retire(std::move(port->servers.front()));
    port->servers.pop_front();
  }
  free_remains();
  return {};
}

// Ends a server and its connections, aside: it waits for their other ends.
void GrpcNetwork::retire(Listener listener) {
  if (retiring_ == nullptr) retiring_ = std::make_unique<SerialThread>("retiring");
  // A function can be copied, and a server cannot.
  retiring_->give([old = std::make_shared<Listener>(std::move(listener))] {
    old->server->Shutdown(kAtOnce);
    old->server.reset();
  });
}

std::shared_ptr<grpc::Channel> GrpcNetwork::channel_to(const Endpoint& to, const ChannelUse& use) const {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(use.most_received);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt("grpc.use_local_subchannel_pool", 1);  // a TCP connection for each
  // The time-out of an attempt: less than a few round trips would never connect over a slow line.
  arguments.SetInt("grpc.min_reconnect_backoff_ms", kConnectTimeoutMs);
  arguments.SetInt("grpc.enable_http_proxy", 0);
  arguments.SetInt(kDecompression, 0);
  arguments.SetInt(kWriteBuffer, kGatheredBytes);
  set_socket_options(arguments, use.lane);
  const std::string target = "dns:///" + to_string(to);  // a host may be called like a scheme of gRPC's
  const auto own = credentials();
  if (!own) return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
  arguments.SetSslTargetNameOverride(use.name.empty() ? kCertificateHost : certificate_host(use.name));
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = own->authority;
  options.pem_private_key = own->key;
  options.pem_cert_chain = own->certificate;
  return grpc::CreateCustomChannel(target, grpc::SslCredentials(options), arguments);
}

ConnectionId GrpcNetwork::refuse_stranger(const Endpoint& to) {
  ConnectionId id;
  {
    const std::lock_guard lock(mutex_);
    id = ++last_;
  }
  sink_(Closed{id, Error{.kind = ErrorKind::kRefused,
                         .where = to_string(to),
                         .what = "a connection needs a certificate of the run",
                         .fix = "join with a token"}});
  return id;
}

ConnectionId GrpcNetwork::connect(const Endpoint& to, Lane lane) {
  free_remains();
  if (strangers_questions_ != nullptr) return refuse_stranger(to);
  auto stream = add<GrpcClientStream>(
      to_string(to), std::make_unique<GrpcClientStream::Call>(channel_to(to, {.lane = lane})));
  CHECK(stream != nullptr);
  stream->start(stream, method_of(lane));
  return stream->id();
}

grpc::ServerGenericBidiReactor* GrpcNetwork::accept(grpc::GenericCallbackServerContext* context, Lane lane) {
  if (lane == Lane::kControl && GrpcQuestions::is_question(context->method()))
    return questions_.accept(context);
  if (context->method() != method_of(lane)) {
    return refuse_call({grpc::StatusCode::UNIMPLEMENTED,
                        fmt::format("this port serves {}, not {}", method_of(lane), context->method())});
  }
  PeerName peer{certificate_name(context->auth_context().get())};
  if (secured_ && peer.certificate.empty()) {
    return refuse_call({grpc::StatusCode::UNAUTHENTICATED,
                        "a connection needs a certificate of the run: join with a token"});
  }
  auto stream = add<GrpcServerStream>(context->peer(), context);
  if (stream == nullptr) return refuse_call({grpc::StatusCode::UNAVAILABLE, "shutting down"});
  Accepted accepted{.connection = stream->id(),
                    .lane = lane,
                    .peer = std::move(peer),
                    .from = context->peer(),
                    .host = host_of(context->peer())};
  stream->start(stream, std::move(accepted));
  return stream.get();
}

std::shared_ptr<GrpcStream> GrpcNetwork::find(ConnectionId connection) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(connection);
  return found == streams_.end() ? nullptr : found->second;
}

void GrpcNetwork::send(ConnectionId connection, Slices frame) {
  if (const auto stream = find(connection)) stream->send(std::move(frame));
}
void GrpcNetwork::consumed(ConnectionId connection, std::uint64_t cost) {
  if (const auto stream = find(connection)) stream->consumed(cost);
}
void GrpcNetwork::close(ConnectionId connection) {
  free_remains();
  if (const auto stream = find(connection)) stream->close();
}

OutgoingQuestion::Way GrpcNetwork::way_to(const Endpoint& to, const Question& question) {
  const auto make = [&] {
    return channel_to(to, {.most_received = static_cast<int>(kMaxAnswerBytes), .name = question.to});
  };
  if (question.asked == Question::Asked::kOnce) return {.channel = make()};
  using Clock = std::chrono::steady_clock;
  auto kept = kept_channels_.take(to_string(to) + " " + question.to, Clock::now(), make);
  return {.channel = std::move(kept.channel), .reached = [asked = std::move(kept.questions)](bool reached) {
            asked->ended(reached, Clock::now());
          }};
}

QuestionId GrpcNetwork::ask(const Endpoint& to, Question question) {
  free_remains();
  if (strangers_questions_ != nullptr) {
    const QuestionId id{++numbers_};
    strangers_questions_->ask(id, to, std::move(question));
    return id;
  }
  const OutgoingQuestion::Way way = way_to(to, question);  // before the question is moved
  return questions_.ask(way, to_string(to), std::move(question));
}
void GrpcNetwork::answer(QuestionId question, Result<std::string> answer) {
  // Each drops an answer to a question that it does not have.
  if (Door* const door = door_now_) door->answer(question, answer);
  questions_.answer(question, std::move(answer));
}

}  // namespace

std::unique_ptr<RenewableNetwork> make_grpc_network(std::optional<NetworkCredentials> credentials,
                                                    NetworkSink sink) {
  return std::make_unique<GrpcNetwork>(std::move(credentials), std::move(sink));
}

}  // namespace gossamer::host
