// The bare probe in C: the same questions and commands as bare-probe.ts, with epoll and no library.
// Reads addresses from stdin, one per line; prints "1", "0" or "?" and each address, and the
// measurements as the last line: seconds, CPU ms and peak memory in KiB.
// Usage: bare-probe DNS-IP DNS-PORT SMTP-PORT CONNECTIONS
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
  // Concurrent questions, so few that the receive buffer of the DNS server holds them.
  QUESTIONS_MAX = 500,
  // A power of two above it: the low bits of a message ID are the slot of its question.
  SLOTS = 512,
  TIMEOUT_S = 2,
  TRIES_MAX = 2,
  RECIPIENTS_PER_TRANSACTION = 100,
  TYPE_A = 1,
  TYPE_MX = 15,
  NONE = -1,
};

// A list of addresses or domains, chained by `next`.
struct chain { int first, last; };
struct domain { const char *name; struct chain addresses; int next; };
struct exchanger { const char *name; int host; bool isKnown; struct chain domains; };
struct host { uint32_t ip; struct chain addresses; bool isActive; };
struct question { bool isOpen; uint16_t id, type; int subject, tries; double askedAt; };
struct connection {
  int fd, host, replies;
  // The address of each reply after EHLO; NONE for other commands.
  int *expected, expectedCount;
  // The first characters of the current line.
  char code[4];
  int column;
  // The commands after EHLO.
  char *out;
  size_t length, sent;
  // Whether the socket took only a part of them.
  bool isWaiting;
};
struct map { const char **keys; int *values; size_t size; };

static char **addresses, *results;
static int *nextAddress, addressCount, domainCount, exchangerCount, hostCount, nextDomain;
static struct domain *domains;
static struct exchanger *exchangers;
static struct host *hosts;
static struct question questions[SLOTS];
static int openQuestions, firstUnasked, openConnections, connectionsMax, queueHead, queueTail, *queue;
static int dnsSocket, poller;
static struct sockaddr_in smtp = { .sin_family = AF_INET };
static struct map domainByName, exchangerByName, hostByIp;
static double lastResultAt;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

static double cpuMs(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  double seconds = used.ru_utime.tv_sec + used.ru_stime.tv_sec;
  return seconds * 1e3 + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count + 1, size);
  if (memory == NULL) fail("calloc");
  return memory;
}

// Returns the place of the value of a key, which is NONE if the key is new (FNV-1a, open addressing).
static int *lookUp(struct map *map, const char *key) {
  uint32_t hash = 2166136261u;
  for (const char *at = key; *at != 0; at++) hash = (hash ^ (uint8_t)*at) * 16777619u;
  size_t slot = hash & (map->size - 1);
  while (map->keys[slot] != NULL && strcmp(map->keys[slot], key) != 0)
    slot = (slot + 1) & (map->size - 1);
  if (map->keys[slot] == NULL) {
    map->keys[slot] = key;
    map->values[slot] = NONE;
  }
  return &map->values[slot];
}

static struct map createMap(int entries) {
  struct map map = { .size = 16 };
  while (map.size < (size_t)entries * 2) map.size *= 2;
  map.keys = allocate(map.size, sizeof *map.keys);
  map.values = allocate(map.size, sizeof *map.values);
  return map;
}

static void setResult(int address, char result) {
  results[address] = result;
  lastResultAt = now();
}

// Opens connections to the hosts in the queue, one at a time to each, for all of its addresses.
static void connectNext(void) {
  while (openConnections < connectionsMax && queueHead < queueTail) {
    struct connection *one = allocate(1, sizeof *one);
    one->host = queue[queueHead++];
    struct host *host = &hosts[one->host];
    size_t bytes = 0, count = 0;
    for (int at = host->addresses.first; at != NONE; at = nextAddress[at], count++)
      bytes += strlen(addresses[at]) + sizeof "RCPT TO:<>\r\n";
    one->expected = allocate(count + 2 * (count / RECIPIENTS_PER_TRANSACTION + 1), sizeof(int));
    char *out = one->out = allocate(bytes + 20 * (count / RECIPIENTS_PER_TRANSACTION + 1) + 6, 1);
    count = 0;
    for (int at = host->addresses.first; at != NONE; at = nextAddress[at], count++) {
      if (count % RECIPIENTS_PER_TRANSACTION == 0) {
        if (count > 0) one->expected[one->expectedCount++] = NONE;
        one->expected[one->expectedCount++] = NONE;
        out += sprintf(out, "%sMAIL FROM:<>\r\n", count > 0 ? "RSET\r\n" : "");
      }
      out += sprintf(out, "RCPT TO:<%s>\r\n", addresses[at]);
      one->expected[one->expectedCount++] = at;
    }
    out += sprintf(out, "QUIT\r\n");
    one->length = out - one->out;
    host->addresses = (struct chain){ NONE, NONE };
    one->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (one->fd < 0) fail("socket");
    setsockopt(one->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    smtp.sin_addr.s_addr = host->ip;
    if (connect(one->fd, (struct sockaddr *)&smtp, sizeof smtp) < 0 && errno != EINPROGRESS)
      fail("connect");
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = one };
    if (epoll_ctl(poller, EPOLL_CTL_ADD, one->fd, &event) < 0) fail("epoll_ctl");
    openConnections++;
  }
}

static void enqueueHost(int host) {
  hosts[host].isActive = true;
  queue[queueTail++] = host;
}

static void addToHost(int domain, int host) {
  struct chain *chain = &domains[domain].addresses;
  if (host == NONE) {
    for (int at = chain->first; at != NONE; at = nextAddress[at]) setResult(at, '?');
    return;
  }
  struct chain *all = &hosts[host].addresses;
  if (all->first == NONE) *all = *chain;
  else {
    nextAddress[all->last] = chain->first;
    all->last = chain->last;
  }
  if (!hosts[host].isActive) enqueueHost(host);
}

static void closeConnection(struct connection *one) {
  for (int n = one->replies < 2 ? 0 : one->replies - 2; n < one->expectedCount; n++)
    if (one->expected[n] != NONE) setResult(one->expected[n], '?');
  close(one->fd);
  struct host *host = &hosts[one->host];
  host->isActive = false;
  if (host->addresses.first != NONE) enqueueHost(one->host);
  free(one->expected);
  free(one->out);
  free(one);
  openConnections--;
}

// Writes the commands after EHLO, as far as the socket takes them.
static void writeCommands(struct connection *one) {
  ssize_t written = write(one->fd, one->out + one->sent, one->length - one->sent);
  if (written > 0) one->sent += written;
  bool isDone = one->sent == one->length;
  if (isDone && !one->isWaiting) return;
  one->isWaiting = !isDone;
  struct epoll_event event = { .events = isDone ? EPOLLIN : EPOLLIN | EPOLLOUT, .data.ptr = one };
  epoll_ctl(poller, EPOLL_CTL_MOD, one->fd, &event);
}

static void onReply(struct connection *one) {
  static const char EHLO[] = "EHLO probe.example.com\r\n";
  int reply = one->replies++;
  if (reply == 0 && write(one->fd, EHLO, sizeof EHLO - 1) < 0) return;
  if (reply == 1) writeCommands(one);
  if (reply < 2 || reply - 2 >= one->expectedCount || one->expected[reply - 2] == NONE) return;
  bool isAccepted = memcmp(one->code, "250", 3) == 0, isRejected = memcmp(one->code, "550", 3) == 0;
  setResult(one->expected[reply - 2], isAccepted ? '1' : isRejected ? '0' : '?');
}

static void readReplies(struct connection *one) {
  char bytes[1 << 16];
  ssize_t length = read(one->fd, bytes, sizeof bytes);
  if (length < 0 && errno == EAGAIN) return;
  if (length <= 0) return closeConnection(one);
  for (ssize_t at = 0; at < length; at++) {
    if (bytes[at] == '\n') {
      if (one->code[3] != '-') onReply(one);
      one->column = 0;
    } else if (one->column < 4) one->code[one->column++] = bytes[at];
  }
}

static void sendQuestion(struct question *question) {
  bool isMx = question->type == TYPE_MX;
  const char *name = isMx ? domains[question->subject].name : exchangers[question->subject].name;
  uint8_t message[300] = { question->id >> 8, question->id & 255, 1, 0, 0, 1 };  // With RD set.
  size_t at = 12;
  for (const char *label = name; *label != 0;) {
    size_t length = strcspn(label, ".");
    message[at++] = length;
    memcpy(message + at, label, length);
    at += length;
    label += length + (label[length] == '.');
  }
  memcpy(message + at, (uint8_t[]){ 0, 0, question->type, 0, 1 }, 5);
  question->askedAt = now();
  question->tries++;
  if (send(dnsSocket, message, at + 5, 0) < 0 && errno != EAGAIN) fail("send");
}

// Asks for the addresses of new exchangers first, then for those of the next domains.
static void askNext(void) {
  static uint16_t generation = 0;
  static int slot = 0;
  while (openQuestions < QUESTIONS_MAX && (firstUnasked < exchangerCount || nextDomain < domainCount)) {
    while (questions[slot].isOpen) slot = (slot + 1) & (SLOTS - 1);
    bool isMx = firstUnasked == exchangerCount;
    questions[slot] = (struct question){
      .isOpen = true,
      .id = slot | (generation++ << 9),
      .type = isMx ? TYPE_MX : TYPE_A,
      .subject = isMx ? nextDomain++ : firstUnasked++,
    };
    openQuestions++;
    sendQuestion(&questions[slot]);
  }
}

static size_t skipName(const uint8_t *message, size_t at) {
  while (message[at] != 0 && message[at] < 0xc0) at += message[at] + 1;
  return at + (message[at] == 0 ? 1 : 2);
}

static const char *readName(const uint8_t *message, size_t at) {
  char name[256] = "";
  for (size_t length = 0; message[at] != 0 && length < 190;) {
    if (message[at] >= 0xc0) {
      at = (message[at] & 0x3f) << 8 | message[at + 1];
      continue;
    }
    length += sprintf(name + length, "%s%.*s", length > 0 ? "." : "", message[at], message + at + 1);
    at += message[at] + 1;
  }
  return strdup(name);
}

static void setHost(struct exchanger *exchanger, int host) {
  exchanger->host = host;
  exchanger->isKnown = true;
  for (int at = exchanger->domains.first; at != NONE; at = domains[at].next) addToHost(at, host);
}

// Handles the answer to a question: the data of the best record, 0 without one.
static void onAnswer(struct question *question, const uint8_t *message, size_t data) {
  question->isOpen = false;
  openQuestions--;
  if (question->type == TYPE_A) {
    if (data == 0) return setHost(&exchangers[question->subject], NONE);
    char key[16];
    snprintf(key, sizeof key, "%08x", *(uint32_t *)memcpy(&(uint32_t){ 0 }, message + data, 4));
    int *host = lookUp(&hostByIp, strdup(key));
    if (*host == NONE) {
      *host = hostCount++;
      memcpy(&hosts[*host].ip, message + data, 4);
      hosts[*host].addresses = (struct chain){ NONE, NONE };
    }
    return setHost(&exchangers[question->subject], *host);
  }
  int domain = question->subject;
  const char *name = data == 0 ? domains[domain].name : readName(message, data + 2);
  int *known = lookUp(&exchangerByName, name);
  if (*known == NONE) {
    *known = exchangerCount++;
    exchangers[*known] = (struct exchanger){ .name = name, .domains = { NONE, NONE } };
  }
  struct exchanger *exchanger = &exchangers[*known];
  if (exchanger->isKnown) return addToHost(domain, exchanger->host);
  domains[domain].next = exchanger->domains.first;
  exchanger->domains.first = domain;
}

static void readAnswers(void) {
  uint8_t message[4096] = { 0 };
  for (ssize_t length; (length = recv(dnsSocket, message, sizeof message - 300, 0)) > 12;) {
    struct question *question = &questions[(message[0] << 8 | message[1]) & (SLOTS - 1)];
    if (!question->isOpen || question->id != (message[0] << 8 | message[1])) continue;
    size_t at = skipName(message, 12) + 4, best = 0;
    for (int left = message[6] << 8 | message[7]; left > 0 && at < (size_t)length; left--) {
      at = skipName(message, at);
      bool isAsked = (message[at] << 8 | message[at + 1]) == question->type;
      // A lower MX preference is better; the first address is taken.
      bool isMx = question->type == TYPE_MX;
      bool isBetter = best == 0 || (isMx && memcmp(message + at + 10, message + best, 2) < 0);
      if (isAsked && isBetter) best = at + 10;
      at += 10 + (message[at + 8] << 8 | message[at + 9]);
    }
    onAnswer(question, message, best);
  }
}

static void repeatQuestions(void) {
  for (int slot = 0; slot < SLOTS; slot++) {
    struct question *question = &questions[slot];
    if (!question->isOpen || now() - question->askedAt < TIMEOUT_S) continue;
    if (question->tries < TRIES_MAX) sendQuestion(question);
    else onAnswer(question, NULL, 0);
  }
}

static void readList(void) {
  size_t capacity = 0;
  char *line = NULL;
  for (ssize_t length; (length = getline(&line, &capacity, stdin)) > 1;) {
    line[length - 1] = 0;
    if (addressCount % 4096 == 0)
      addresses = realloc(addresses, (addressCount + 4096) * sizeof *addresses);
    if (addresses == NULL) fail("realloc");
    addresses[addressCount++] = strdup(line);
  }
}

static void groupByDomain(void) {
  domains = allocate(addressCount, sizeof *domains);
  exchangers = allocate(addressCount, sizeof *exchangers);
  hosts = allocate(addressCount, sizeof *hosts);
  queue = allocate(2 * addressCount, sizeof *queue);
  nextAddress = allocate(addressCount, sizeof *nextAddress);
  results = allocate(addressCount, 1);
  domainByName = createMap(addressCount);
  exchangerByName = createMap(addressCount);
  hostByIp = createMap(addressCount);
  for (int at = 0; at < addressCount; at++) {
    const char *name = strrchr(addresses[at], '@') + 1;
    int *known = lookUp(&domainByName, name);
    nextAddress[at] = NONE;
    if (*known == NONE) {
      *known = domainCount++;
      domains[*known] = (struct domain){ .name = name, .addresses = { at, at } };
    } else {
      struct chain *chain = &domains[*known].addresses;
      nextAddress[chain->last] = at;
      chain->last = at;
    }
  }
}

static long peakMemoryKib(void) {
  char line[256];
  long kib = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL) sscanf(line, "VmHWM: %ld", &kib);
  return kib;
}

int main(int count, char **arguments) {
  if (count != 5) {
    fprintf(stderr, "Usage: bare-probe DNS-IP DNS-PORT SMTP-PORT CONNECTIONS\n");
    return 64;
  }
  struct sockaddr_in dns = {
    .sin_family = AF_INET,
    .sin_addr.s_addr = inet_addr(arguments[1]),
    .sin_port = htons(atoi(arguments[2])),
  };
  smtp.sin_port = htons(atoi(arguments[3]));
  connectionsMax = atoi(arguments[4]);
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  readList();
  double startedAt = now(), cpuBeforeMs = cpuMs();
  groupByDomain();
  poller = epoll_create1(0);
  dnsSocket = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  setsockopt(dnsSocket, SOL_SOCKET, SO_RCVBUF, &(int){ 1 << 20 }, sizeof(int));
  if (connect(dnsSocket, (struct sockaddr *)&dns, sizeof dns) < 0) fail("connect");
  epoll_ctl(poller, EPOLL_CTL_ADD, dnsSocket, &(struct epoll_event){ .events = EPOLLIN });
  for (;;) {
    askNext();
    connectNext();
    if (openQuestions + openConnections == 0) break;
    struct epoll_event events[256];
    int ready = epoll_wait(poller, events, 256, 500);
    for (int n = 0; n < ready; n++) {
      struct connection *one = events[n].data.ptr;
      if (one == NULL) readAnswers();
      else {
        if (events[n].events & EPOLLOUT) writeCommands(one);
        readReplies(one);
      }
    }
    if (ready == 0) repeatQuestions();
  }
  double seconds = lastResultAt - startedAt, usedMs = cpuMs() - cpuBeforeMs;
  for (int at = 0; at < addressCount; at++)
    printf("%c %s\n", results[at] == 0 ? '?' : results[at], addresses[at]);
  printf("%f %f %ld\n", seconds, usedMs, peakMemoryKib());
}
