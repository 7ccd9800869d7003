import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'

/** A proxy between ev and PostgreSQL that simulates network failures. */
export type CutProxy = {
  /** The target URL with the port of the proxy. */
  readonly url: string
  /**
   * Forwards the next COMMIT and resets its connection instead of returning the response: the
   * commit is durable, but the client cannot know. Resolves then. With `containing`, only for a
   * transaction with a matching statement.
   */
  cutAfterCommit(containing?: RegExp): Promise<void>
  /** The same before the COMMIT reaches the server, which rolls the transaction back. */
  cutBeforeCommit(containing?: RegExp): Promise<void>
  /**
   * Resets the connection of the statement with this number, counted from 0 over all connections
   * from now on, before it reaches the server.
   */
  cutBeforeStatement(number: number): Promise<void>
  /**
   * Resets the connection on which the server sends the byte with this number, counted over all
   * connections from now on.
   */
  cutAfterBytes(bytes: number): Promise<void>
  /** Resets all open connections. */
  reset(): void
  /** Stops forwarding in both directions, and keeps connections open. */
  freeze(): void
  thaw(): void
  /** Resets open and new connections until `accept`. */
  refuse(): void
  accept(): void
  /** Connects new connections to another server, as a failover does; open ones stay. */
  redirect(target: string): void
  /** Number of open connections. */
  readonly open: number
  close(): Promise<void>
}

type Cut = {
  readonly when: 'before' | 'after'
  readonly fits: (statement: Statement) => boolean
  readonly done: () => void
}

/** Starts a proxy on loopback for the server of a `postgres://…` URL. */
export async function cutProxy(target: string): Promise<CutProxy> {
  let upstream = new URL(target)
  const pairs = new Set<Pair>()
  let cut: Cut | null = null
  let bytes: { left: number; done: () => void } | null = null
  let isFrozen = false
  let isRefusing = false

  const server = createServer(client => {
    if (isRefusing) return void client.resetAndDestroy()
    const pair = join(client, createConnection(Number(upstream.port), upstream.hostname))
    pairs.add(pair)
    if (isFrozen) pair.pause()
    const statements = statementReader()
    let isCutting: Cut | null = null
    client.on('data', (chunk: Buffer) => {
      for (const statement of statements(chunk)) {
        if (cut === null || !cut.fits(statement)) continue
        isCutting = cut
        cut = null
      }
      if (isCutting?.when !== 'before') return void pair.server.write(chunk)
      pair.reset()
      isCutting.done()
    })
    pair.server.on('data', (chunk: Buffer) => {
      if (bytes !== null) bytes.left -= chunk.length
      const isLast = bytes !== null && bytes.left < 0
      if (isCutting === null && !isLast) return void client.write(chunk)
      pair.reset()
      isCutting?.done()
      if (isLast) bytes?.done()
      if (isLast) bytes = null
    })
    client.on('close', () => pairs.delete(pair))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const url = new URL(target)
  url.port = String(port)
  const reset = () => {
    for (const pair of pairs) pair.reset()
  }
  const cutAt = (when: Cut['when'], fits: Cut['fits']) =>
    new Promise<void>(done => {
      cut = { when, fits, done }
    })
  const commitOf =
    (containing = /(?:)/): Cut['fits'] =>
    ({ text, before }) =>
      /^commit/i.test(text) && containing.test(before)
  return {
    url: url.href,
    reset,
    get open() {
      return pairs.size
    },
    cutAfterCommit: containing => cutAt('after', commitOf(containing)),
    cutBeforeCommit: containing => cutAt('before', commitOf(containing)),
    cutBeforeStatement(number) {
      let left = number
      return cutAt('before', () => left-- === 0)
    },
    cutAfterBytes: left =>
      new Promise<void>(done => {
        bytes = { left, done }
      }),
    freeze() {
      isFrozen = true
      for (const pair of pairs) pair.pause()
    },
    thaw() {
      isFrozen = false
      for (const pair of pairs) pair.resume()
    },
    refuse() {
      isRefusing = true
      reset()
    },
    accept() {
      isRefusing = false
    },
    redirect(next) {
      upstream = new URL(next)
    },
    async close() {
      reset()
      server.close()
      await once(server, 'close')
    },
  }
}

type Pair = ReturnType<typeof join>

function join(client: Socket, server: Socket) {
  const both = [client, server]
  for (const [one, other] of [both, both.toReversed()] as [Socket, Socket][]) {
    one.setNoDelay(true)
    one.on('error', () => {})
    one.on('end', () => other.end())
    one.on('close', () => other.destroy())
  }
  return {
    server,
    reset() {
      client.resetAndDestroy()
      server.destroy()
    },
    pause: () => void both.map(socket => socket.pause()),
    resume: () => void both.map(socket => socket.resume()),
  }
}

type Statement = {
  readonly text: string
  /** Earlier statements of the same transaction. */
  readonly before: string
}

/**
 * Returns a parser of the client's side of the protocol: messages with a type, a length and, in
 * Query and Parse, a statement (PostgreSQL 18 §54.7). It returns the statements of a chunk.
 */
function statementReader() {
  let rest = Buffer.alloc(0)
  let isStarted = false
  let before = ''
  return (chunk: Buffer): Statement[] => {
    const found: Statement[] = []
    rest = Buffer.concat([rest, chunk])
    for (;;) {
      // The startup message has no type.
      const typeLength = isStarted ? 1 : 0
      if (rest.length < typeLength + 4) return found
      const length = typeLength + rest.readUInt32BE(typeLength)
      if (rest.length < length) return found
      const type = isStarted ? String.fromCharCode(rest[0] as number) : ''
      const body = rest.toString('utf8', typeLength + 4, length)
      rest = rest.subarray(length)
      isStarted = true
      if (type !== 'Q' && type !== 'P') continue
      const text = type === 'Q' ? body : body.slice(body.indexOf('\0') + 1)
      if (/^(begin|start transaction)/i.test(text)) before = ''
      found.push({ text, before })
      before += `${text}\n`
    }
  }
}
