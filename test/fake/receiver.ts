import type { IncomingHttpHeaders } from 'node:http'

export type ReceiverOptions = {
  /** The name in its certificate and in `url`; `hook.example` when left out. Tests' zones let it mean 127.0.0.1. */
  readonly name?: string
}

/** A request as it came in. */
export type Received = {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** Epoch ms, of the system's clock. */
  readonly at: number
}

export type Receiver = {
  /** `https://hook.example:PORT/hook` */
  readonly url: string
  readonly port: number
  /** PEM of the authority to believe. */
  readonly ca: string
  /** All that came in whole, in order. */
  readonly received: Received[]
  close(): Promise<void>
}

/** A real HTTPS server on 127.0.0.1 that keeps what it gets and answers 200, or what it is told. */
export function startReceiver(_options: ReceiverOptions = {}): Promise<Receiver> {
  return Promise.reject(new Error('not yet'))
}
