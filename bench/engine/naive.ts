import { randomBytes } from 'node:crypto'
import { promises as dns } from 'node:dns'
import { connect, type Socket } from 'node:net'
import pLimit from 'p-limit'
import type { OnResult, RunOptions } from './run-options.ts'

/**
 * Verifies as typical verifiers do: two DNS queries and one connection for each address, and each
 * command waits for the previous reply. With `probesCatchAll` it probes a random recipient first.
 */
export async function verifyNaively(
  options: RunOptions,
  probesCatchAll: boolean,
  onResult: OnResult,
): Promise<void> {
  const resolver = new dns.Resolver()
  resolver.setServers([options.dnsAddress])
  const totalLimit = pLimit(options.concurrency)
  const hostLimits = new Map<string, ReturnType<typeof pLimit>>()
  const limitFor = (host: string) => {
    const limit = hostLimits.get(host) ?? pLimit(options.sessionsPerHost)
    hostLimits.set(host, limit)
    return limit
  }
  const verifyOne = async (address: string) => {
    const exchangers = await resolver.resolveMx(domainOf(address))
    const host = exchangers.sort((a, b) => a.priority - b.priority)[0]?.exchange ?? ''
    const [ip = ''] = await resolver.resolve4(host)
    await limitFor(host)(() =>
      new SmtpSession(ip, options.smtpPort).verify(address, probesCatchAll, onResult),
    )
  }
  await Promise.all(options.addresses.map(address => totalLimit(() => verifyOne(address))))
}

const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1)

/** A session that verifies one address. */
class SmtpSession {
  readonly #socket: Socket
  readonly #closed: Promise<void>
  #received = ''
  #reply: (code: number) => void = () => {}
  #fail: (error: Error) => void = () => {}

  constructor(ip: string, port: number) {
    this.#socket = connect({ host: ip, port, noDelay: true }).setEncoding('latin1')
    this.#socket.on('data', text => this.#onData(String(text)))
    this.#socket.on('error', error => this.#fail(error))
    this.#closed = new Promise(resolve => {
      this.#socket.on('close', () => {
        this.#fail(new Error('The server closed the connection.'))
        resolve()
      })
    })
  }

  /** Reports the result as soon as it is known, and resolves when the connection is closed. */
  async verify(address: string, probesCatchAll: boolean, onResult: OnResult): Promise<void> {
    try {
      if ((await this.#next()) !== 220) throw new Error('The server rejected the connection.')
      await this.#command('EHLO probe.example.com')
      await this.#command('MAIL FROM:<>')
      const name = `${randomBytes(10).toString('hex')}@${domainOf(address)}`
      const isCatchAll = probesCatchAll && (await this.#command(`RCPT TO:<${name}>`)) === 250
      const code = await this.#command(`RCPT TO:<${address}>`)
      onResult(address, code === 250 && !isCatchAll)
      await this.#command('QUIT')
    } finally {
      // The server closes first, as with ev; otherwise it would count two concurrent connections.
      this.#socket.end()
      await this.#closed
    }
  }

  #command(command: string): Promise<number> {
    this.#socket.write(`${command}\r\n`)
    return this.#next()
  }

  #next(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#reply = resolve
      this.#fail = reject
    })
  }

  #onData(text: string): void {
    this.#received += text
    if (!this.#received.endsWith('\n')) return
    const last = this.#received.slice(
      this.#received.lastIndexOf('\n', this.#received.length - 2) + 1,
    )
    if (last[3] === '-') return
    this.#received = ''
    this.#reply(Number(last.slice(0, 3)))
  }
}
