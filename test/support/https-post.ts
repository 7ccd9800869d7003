import { onTestFinished } from 'vitest'
import { createIpPolicy } from '../../src/engine/smtp/dial-policy.ts'
import { type Clock, MINUTE } from '../../src/platform/clock.ts'
import { createHttpsTransport } from '../../src/webhooks/https-transport.ts'
import type { TransportResult, WebhookTransport } from '../../src/webhooks/transport.ts'
import { testAuthority } from './certificate.ts'
import { type FakeClock, fakeClock } from './clock.ts'
import { type Receiver, type ReceiverOptions, startReceiver } from './http-receiver.ts'
import { type Zone, zone } from './zone.ts'

type TestTransportOptions = {
  readonly clock?: Clock
  /** Allowed addresses that are not public. */
  readonly allowed?: readonly string[]
  readonly resolver?: Zone
  /** Long by default: a busy machine must not lose a connection between two requests. */
  readonly idleMs?: number
}

export const BODY = '{"event":"batch.completed","data":{}}'

/**
 * Opens a transport that trusts the test authority and resolves `hook.example` to 127.0.0.1; closed
 * after the test.
 */
export function openTransport(
  options: TestTransportOptions = {},
): WebhookTransport & { to(url: string): Promise<TransportResult> } {
  const { clock = fakeClock(), allowed = ['127.0.0.1'], idleMs = MINUTE } = options
  const resolver = options.resolver ?? zone({ 'hook.example': { A: ['127.0.0.1'] } })
  const ca = testAuthority().cert
  const post = createHttpsTransport({
    clock,
    resolver,
    mayDial: createIpPolicy(allowed),
    ca,
    idleMs,
  })
  onTestFinished(() => post.close())
  const to = (url: string) =>
    post.send({ url, headers: { 'content-type': 'application/json', 'x-ev': 'a b' }, body: BODY })
  return { ...post, to }
}

/** Starts a receiver, which is closed after the test. */
export async function openReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const receiver = await startReceiver(options)
  onTestFinished(() => receiver.close())
  return receiver
}

/** Sends one request to such a receiver, on a clock that advances only on request. */
export async function sendOne(options: ReceiverOptions = {}): Promise<Sent> {
  const clock = fakeClock()
  const receiver = await openReceiver({ clock, ...options })
  return { receiver, clock, sending: openTransport({ clock }).to(receiver.url) }
}

export type Sent = {
  readonly receiver: Receiver
  readonly clock: FakeClock
  readonly sending: Promise<TransportResult>
}
