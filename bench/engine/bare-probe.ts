import { connect } from 'node:net'
import { BareDns } from './bare-dns.ts'
import type { OnResult, RunOptions } from './run-options.ts'
import { LIMITS } from './scenario.ts'

/** Concurrent DNS questions: so few that the receive buffer of the DNS server holds them. */
const QUESTIONS_MAX = 500
/** Every server must accept this many recipients in a transaction (RFC 5321 §4.5.3.1.8). */
const RECIPIENTS_PER_TRANSACTION = 100

type Host = {
  readonly ip: string
  /** Addresses for its next connection. */
  waiting: string[]
  /** Whether it is in the queue or has a connection. */
  isActive: boolean
}

/**
 * The least that a probe can do: it asks for MX and A, and sends all recipients of a mail server in
 * one write. No catch-all probe, no timeout, no retry, no rate limit, no interpretation of replies.
 */
export class BareProbe {
  readonly #options: RunOptions
  readonly #onResult: OnResult
  readonly #hosts = new Map<string, Host>()
  readonly #addressByName = new Map<string, Promise<string | null>>()
  /** Hosts that wait for a connection. */
  readonly #queue: Host[] = []
  #connections = 0
  #isResolved = false
  #finish: () => void = () => {}

  constructor(options: RunOptions, onResult: OnResult) {
    this.#options = options
    this.#onResult = onResult
  }

  /** Resolves after the last connection is closed. */
  async run(): Promise<void> {
    const finished = new Promise<void>(resolve => {
      this.#finish = resolve
    })
    const dns = await BareDns.open(this.#options.dnsAddress)
    const domains = Map.groupBy(this.#options.addresses, domainOf).entries()
    const resolveDomains = async () => {
      for (const [domain, addresses] of domains) {
        this.#add(await this.#resolve(dns, domain), addresses)
      }
    }
    await Promise.all(Array.from({ length: QUESTIONS_MAX }, resolveDomains))
    dns.close()
    this.#isResolved = true
    this.#connectNext()
    await finished
  }

  /** Returns the address of the mail server of a domain; asks only once for each server. */
  async #resolve(dns: BareDns, domain: string): Promise<string | null> {
    const name = (await dns.resolveMx(domain)) ?? domain
    const address = this.#addressByName.get(name) ?? dns.resolveA(name)
    this.#addressByName.set(name, address)
    return address
  }

  #add(ip: string | null, addresses: readonly string[]): void {
    if (ip === null) {
      for (const address of addresses) this.#onResult(address, null)
      return
    }
    const host = this.#hosts.get(ip) ?? { ip, waiting: [], isActive: false }
    this.#hosts.set(ip, host)
    host.waiting.push(...addresses)
    if (host.isActive) return
    host.isActive = true
    this.#queue.push(host)
    this.#connectNext()
  }

  #connectNext(): void {
    while (this.#connections < LIMITS.concurrency) {
      const host = this.#queue.shift()
      if (host === undefined) break
      this.#connections += 1
      const recipients = host.waiting
      host.waiting = []
      probe(host.ip, this.#options.smtpPort, recipients, this.#onResult, () => {
        this.#connections -= 1
        host.isActive = host.waiting.length > 0
        if (host.isActive) this.#queue.push(host)
        this.#connectNext()
      })
    }
    if (this.#isResolved && this.#connections === 0) this.#finish()
  }
}

/** Probes recipients in one connection: a write after the greeting, and one after EHLO. */
function probe(
  host: string,
  port: number,
  recipients: readonly string[],
  onResult: OnResult,
  onClose: () => void,
): void {
  const { text, expected } = transactionsOf(recipients)
  let replies = 0
  let unread = ''
  const onReply = (code: string) => {
    const recipient = expected[replies - 2]
    if (replies === 0) socket.write('EHLO probe.example.com\r\n', 'latin1')
    else if (replies === 1) socket.write(text, 'latin1')
    else if (recipient != null) onResult(recipient, DELIVERABLE[code] ?? null)
    replies += 1
  }
  const onRead = (length: number) => {
    const received = unread + BUFFER.toString('latin1', 0, length)
    let start = 0
    for (let end = received.indexOf('\n'); end !== -1; end = received.indexOf('\n', start)) {
      if (received[start + 3] !== '-') onReply(received.slice(start, start + 3))
      start = end + 1
    }
    unread = received.slice(start)
    return true
  }
  const onread = { buffer: BUFFER, callback: onRead }
  const socket = connect({ host, port, noDelay: true, onread }).on('error', () => {})
  socket.on('close', () => {
    for (const recipient of expected.slice(Math.max(0, replies - 2))) {
      if (recipient !== null) onResult(recipient, null)
    }
    onClose()
  })
}

/** All connections read into this buffer, one after another. */
const BUFFER = Buffer.alloc(1 << 16)
const DELIVERABLE: Readonly<Record<string, boolean>> = { 250: true, 550: false }

/** Returns the commands after EHLO, and the recipient of each; null for other commands. */
function transactionsOf(recipients: readonly string[]) {
  const expected: (string | null)[] = []
  let text = ''
  for (const [n, recipient] of recipients.entries()) {
    if (n % RECIPIENTS_PER_TRANSACTION === 0) {
      text += n === 0 ? 'MAIL FROM:<>\r\n' : 'RSET\r\nMAIL FROM:<>\r\n'
      expected.push(...(n === 0 ? [null] : [null, null]))
    }
    text += `RCPT TO:<${recipient}>\r\n`
    expected.push(recipient)
  }
  return { text: `${text}QUIT\r\n`, expected }
}

const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1)
