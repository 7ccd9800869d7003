import { randomBytes } from 'node:crypto'
import { promises as dns } from 'node:dns'
import { connect, type Socket } from 'node:net'
import pLimit from 'p-limit'
import type { Errand, Told } from './scenario-run.ts'

/**
 * What verifiers usually do: each address has two DNS questions and a connection of its own, and every
 * command waits for the reply to the one before. `asksCatchAll` asks for a random name first, as they do.
 */
export async function askNaively(errand: Errand, asksCatchAll: boolean, tell: Told): Promise<void> {
  const resolver = new dns.Resolver()
  resolver.setServers([errand.dnsAddress])
  const inAll = pLimit(errand.concurrency)
  const doors = new Map<string, ReturnType<typeof pLimit>>()
  const doorOf = (host: string) => {
    const door = doors.get(host) ?? pLimit(errand.sessionsPerHost)
    doors.set(host, door)
    return door
  }
  const askOne = async (address: string) => {
    const exchangers = await resolver.resolveMx(domainOf(address))
    const host = exchangers.sort((a, b) => a.priority - b.priority)[0]?.exchange ?? ''
    const [ip = ''] = await resolver.resolve4(host)
    await doorOf(host)(() => new Conversation(ip, errand.smtpPort).ask(address, asksCatchAll, tell))
  }
  await Promise.all(errand.addresses.map(address => inAll(() => askOne(address))))
}

const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1)

/** One connection, one address. */
class Conversation {
  readonly #socket: Socket
  readonly #closed: Promise<void>
  #heard = ''
  #reply: (code: number) => void = () => {}
  #fail: (error: Error) => void = () => {}

  constructor(ip: string, port: number) {
    this.#socket = connect({ host: ip, port, noDelay: true }).setEncoding('latin1')
    this.#socket.on('data', text => this.#hear(String(text)))
    this.#socket.on('error', error => this.#fail(error))
    this.#closed = new Promise(resolve => {
      this.#socket.on('close', () => {
        this.#fail(new Error('The server hung up.'))
        resolve()
      })
    })
  }

  /** Tells whether the mailbox exists as soon as it is known, and resolves when the connection is closed. */
  async ask(address: string, asksCatchAll: boolean, tell: Told): Promise<void> {
    try {
      if ((await this.#next()) !== 220) throw new Error('The server will not have us.')
      await this.#say('EHLO probe.example.com')
      await this.#say('MAIL FROM:<>')
      const name = `${randomBytes(10).toString('hex')}@${domainOf(address)}`
      const takesAll = asksCatchAll && (await this.#say(`RCPT TO:<${name}>`)) === 250
      const code = await this.#say(`RCPT TO:<${address}>`)
      tell(address, code === 250 && !takesAll)
      await this.#say('QUIT')
    } finally {
      // The server hangs up first, as it does for us: else two connections would count at once.
      this.#socket.end()
      await this.#closed
    }
  }

  #say(command: string): Promise<number> {
    this.#socket.write(`${command}\r\n`)
    return this.#next()
  }

  #next(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#reply = resolve
      this.#fail = reject
    })
  }

  #hear(text: string): void {
    this.#heard += text
    if (!this.#heard.endsWith('\n')) return
    const last = this.#heard.slice(this.#heard.lastIndexOf('\n', this.#heard.length - 2) + 1)
    if (last[3] === '-') return
    this.#heard = ''
    this.#reply(Number(last.slice(0, 3)))
  }
}
