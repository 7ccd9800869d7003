import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'

/** Record types (RFC 1035 §3.2.2). */
const A = 1
const MX = 15
/** The header is 12 bytes (RFC 1035 §4.1.1); flags with only RD set. */
const HEADER_BYTES = 12
const RECURSION_DESIRED = 0x0100
/** A question without an answer is repeated once after this time, and then fails. */
const TIMEOUT_MS = 2_000

/** Asks one DNS server over one UDP socket. */
export class BareDns {
  readonly #socket: Socket
  readonly #pending = new Map<number, (message: Buffer | null) => void>()
  #lastId = 0

  private constructor(socket: Socket) {
    this.#socket = socket.on('message', message => {
      this.#pending.get(message.readUInt16BE(0))?.(message)
    })
  }

  static async open(server: string): Promise<BareDns> {
    const [ip, port] = server.split(':')
    const socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 })
    socket.connect(Number(port), ip)
    await once(socket, 'connect')
    return new BareDns(socket)
  }

  /** Returns the exchanger with the lowest preference, or null. */
  async resolveMx(name: string): Promise<string | null> {
    const message = await this.#ask(name, MX)
    if (message === null) return null
    const exchangers = [...dataOf(message, MX)].map(at => ({
      preference: message.readUInt16BE(at),
      host: nameAt(message, at + 2),
    }))
    return exchangers.sort((a, b) => a.preference - b.preference)[0]?.host ?? null
  }

  /** Returns the first address, or null. */
  async resolveA(name: string): Promise<string | null> {
    const message = await this.#ask(name, A)
    if (message === null) return null
    const [at] = dataOf(message, A)
    return at === undefined ? null : message.subarray(at, at + 4).join('.')
  }

  close(): void {
    this.#socket.close()
  }

  /** Returns the response, or null without one. */
  #ask(name: string, type: number): Promise<Buffer | null> {
    this.#lastId = (this.#lastId + 1) & 0xffff
    const id = this.#lastId
    const query = encodeQuery(id, name, type)
    return new Promise(resolve => {
      const finish = (message: Buffer | null) => {
        clearTimeout(timer)
        this.#pending.delete(id)
        resolve(message)
      }
      let timer = setTimeout(() => {
        this.#socket.send(query)
        timer = setTimeout(() => finish(null), TIMEOUT_MS)
      }, TIMEOUT_MS)
      this.#pending.set(id, finish)
      this.#socket.send(query)
    })
  }
}

function encodeQuery(id: number, name: string, type: number): Buffer {
  // The name takes one byte more than its text for the first length, and one for the root.
  const query = Buffer.alloc(HEADER_BYTES + name.length + 2 + 4)
  query.writeUInt16BE(id, 0)
  query.writeUInt16BE(RECURSION_DESIRED, 2)
  query.writeUInt16BE(1, 4)
  let at = HEADER_BYTES
  for (const label of name.split('.')) {
    query[at] = label.length
    at += 1 + query.write(label, at + 1, 'latin1')
  }
  query.writeUInt16BE(type, at + 1)
  query.writeUInt16BE(1, at + 3)
  return query
}

/** Yields the offset of the data of each answer of this type. */
function* dataOf(message: Buffer, type: number): Generator<number> {
  let at = afterName(message, HEADER_BYTES) + 4
  for (let left = message.readUInt16BE(6); left > 0; left -= 1) {
    at = afterName(message, at)
    if (message.readUInt16BE(at) === type) yield at + 10
    at += 10 + message.readUInt16BE(at + 8)
  }
}

/** Whether the byte starts a compression pointer (RFC 1035 §4.1.4). */
const isPointer = (length: number) => length >= 0xc0

function afterName(message: Buffer, at: number): number {
  for (;;) {
    const length = message.readUInt8(at)
    if (isPointer(length)) return at + 2
    if (length === 0) return at + 1
    at += 1 + length
  }
}

function nameAt(message: Buffer, at: number): string {
  const labels: string[] = []
  for (;;) {
    const length = message.readUInt8(at)
    if (length === 0) return labels.join('.')
    if (isPointer(length)) {
      at = message.readUInt16BE(at) & 0x3fff
    } else {
      labels.push(message.toString('latin1', at + 1, at + 1 + length))
      at += 1 + length
    }
  }
}
