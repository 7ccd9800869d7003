import { type Duplex, duplexPair } from 'node:stream'
import type { Resolver } from '../../src/engine/dns/resolver.ts'
import type { Dial } from '../../src/engine/smtp/dial.ts'
import type { Clock } from '../../src/platform/clock.ts'

/** A DNS that is one round trip away. */
export const remoteResolver = (near: Resolver, clock: Clock, roundTripMs: number): Resolver => ({
  async resolve(name, type, signal) {
    await passing(clock, roundTripMs)
    return near.resolve(name, type, signal)
  },
})

/** Mail servers that are one round trip away: the handshake takes one, and every byte half of one. */
export const remoteDial = (near: Dial, clock: Clock, roundTripMs: number): Dial => ({
  async connect(to, signal) {
    await passing(clock, roundTripMs)
    return farSocket(await near.connect(to, signal), clock, roundTripMs / 2)
  },
  secure: near.secure,
})

function farSocket(near: Duplex, clock: Clock, oneWayMs: number): Duplex {
  const [here, there] = duplexPair()
  const carry = (from: Duplex, to: Duplex) => {
    from.on('data', (bytes: Uint8Array) => clock.after(oneWayMs, () => to.write(bytes)))
    from.on('end', () => clock.after(oneWayMs, () => to.end()))
  }
  carry(there, near)
  // The server hears of the connection half a trip after we do, and only then greets.
  clock.after(oneWayMs, () => carry(near, there))
  return here
}

const passing = (clock: Clock, ms: number) => new Promise<void>(wake => clock.after(ms, wake))
