import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Simulator } from '../../src/simulator/simulator.ts'

/** A minimal client that sends lines and returns complete replies. */
export class Talk {
  #socket: Socket
  #received = ''
  #ended = false
  #wake = () => {}

  constructor(socket: Socket) {
    this.#socket = socket
    this.#listen()
  }

  static async with(
    { smtpPort: port, addresses }: Pick<Simulator, 'smtpPort' | 'addresses'>,
    name: string,
    localAddress?: string,
  ): Promise<Talk> {
    const [host = ''] = addresses.get(name) ?? []
    const socket = connect({ port, host, ...(localAddress && { localAddress }) })
    await once(socket, 'connect')
    return new Talk(socket)
  }

  /**
   * Returns the next reply, lines joined by `\n`; `null` at the end of the connection, the error
   * code after a failure.
   */
  async reply(): Promise<string | null> {
    const whole = /^(?:\d{3}-.*\r\n)*\d{3} .*\r\n/
    while (!whole.test(this.#received) && !this.#ended) await this.#more()
    const reply = whole.exec(this.#received)?.[0]
    if (reply === undefined) return this.broken
    this.#received = this.#received.slice(reply.length)
    return reply.trimEnd().replaceAll('\r\n', '\n')
  }

  async say(line: string): Promise<string | null> {
    this.send(`${line}\r\n`)
    return this.reply()
  }

  send(bytes: string): void {
    this.#socket.write(bytes)
  }

  /** Returns all bytes received, at least `length`. */
  async received(length: number): Promise<string> {
    while (this.#received.length < length && !this.#ended) await this.#more()
    return this.#received
  }

  async secure(): Promise<void> {
    this.#socket.removeAllListeners('data')
    const secure = connectTls({ socket: this.#socket, rejectUnauthorized: false })
    await once(secure, 'secureConnect')
    this.#socket = secure
    this.#listen()
  }

  hangUp(): void {
    this.#socket.destroy()
  }

  /** Code of the connection error. */
  broken: string | null = null

  #listen(): void {
    this.#socket.on('data', bytes => {
      this.#received += bytes.toString('latin1')
      this.#wake()
    })
    this.#socket.on('error', (error: NodeJS.ErrnoException) => {
      this.broken = error.code ?? error.message
    })
    for (const event of ['end', 'close']) {
      this.#socket.on(event, () => {
        this.#ended = true
        this.#wake()
      })
    }
  }

  #more(): Promise<void> {
    return new Promise(resolve => {
      this.#wake = resolve
    })
  }
}
