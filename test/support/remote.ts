import { type Duplex, duplexPair } from 'node:stream'
import type { Resolver } from '../../src/engine/dns/resolver.ts'
import type { Dial } from '../../src/engine/smtp/dial.ts'
import type { Clock } from '../../src/platform/clock.ts'

/** A DNS with a latency of one round trip. */
export const remoteResolver = (inner: Resolver, clock: Clock, roundTripMs: number): Resolver => ({
  async resolve(name, type, signal) {
    await delay(clock, roundTripMs)
    return inner.resolve(name, type, signal)
  },
})

/** Mail servers with latency: connecting takes one round trip, and every byte half of one. */
export const remoteDial = (inner: Dial, clock: Clock, roundTripMs: number): Dial => ({
  async connect(to, signal) {
    await delay(clock, roundTripMs)
    return delayedSocket(await inner.connect(to, signal), clock, roundTripMs / 2)
  },
  secure: inner.secure,
})

function delayedSocket(inner: Duplex, clock: Clock, oneWayMs: number): Duplex {
  const [local, remote] = duplexPair()
  const forward = (from: Duplex, to: Duplex) => {
    from.on('data', (bytes: Uint8Array) => clock.after(oneWayMs, () => to.write(bytes)))
    from.on('end', () => clock.after(oneWayMs, () => to.end()))
  }
  forward(remote, inner)
  // The server sees the connection half a round trip after the client, and greets then.
  clock.after(oneWayMs, () => forward(inner, remote))
  return local
}

const delay = (clock: Clock, ms: number) => new Promise<void>(wake => clock.after(ms, wake))
