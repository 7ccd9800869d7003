import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { verifyWebhook } from '../../client/webhook-signature.ts'
import { SECOND } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'

/** A request as it came in. */
export type Arrival = { readonly headers: IncomingHttpHeaders; readonly body: Buffer }

export type ServerOptions = {
  readonly host: string
  /** 0: a free one. */
  readonly port: number
  /** What whoever posts is answered. */
  readonly status: number
  /** Every POST that came in whole, before it is answered. */
  readonly onArrival: (arrival: Arrival) => Promise<void>
}

export interface Receiver {
  readonly port: number
  /** Answers what is under way. */
  close(): Promise<void>
}

/** A server over plain HTTP that takes whatever is posted to it. */
export async function startReceiver(options: ServerOptions): Promise<Receiver> {
  const limits = { requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }
  const server = createServer(limits, (request, response) => {
    answer(request, response, options).catch(() => response.destroy())
  })
  await listen(server, options)
  const { port } = server.address() as AddressInfo
  return { port, close: () => closed(server) }
}

/** As long as ev waits for an answer. */
const REQUEST_MS = 30 * SECOND
/** Events are a few hundred bytes. */
const BODY_MAX = 1024 * 1024

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { status, onArrival }: ServerOptions,
): Promise<void> {
  if (request.method !== 'POST') {
    response.setHeader('Allow', 'POST')
    return say(response, 405, 'Events are posted here.')
  }
  const body = await bodyOf(request)
  if (body === null) {
    // The rest of it would have to be read before the next request.
    response.setHeader('Connection', 'close')
    return say(response, 413, `That is more than ${BODY_MAX} bytes.`)
  }
  await onArrival({ headers: request.headers, body })
  say(response, status, 'ev webhooks listen took it.')
}

function say(response: ServerResponse, status: number, text: string): void {
  response.statusCode = status
  response.setHeader('Content-Type', 'text/plain')
  response.end(`${text}\n`)
}

/** Null when it is too long. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > BODY_MAX) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function listen(server: Server, { host, port }: ServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', cause => reject(cannotListen(host, port, cause)))
    server.listen(port, host, resolve)
  })
}

function cannotListen(host: string, port: number, cause: NodeJS.ErrnoException): EvError {
  const remedy =
    cause.code === 'EADDRINUSE'
      ? 'Another program has it, maybe another “ev webhooks listen”: end that one, or name another port with --port (0: a free one).'
      : 'Name another place with --host and --port.'
  const sentence = `Port ${port} of ${host} cannot be listened on: ${errorMessage(cause)}. ${remedy}`
  return new EvError('io', sentence, { cause })
}

function closed(server: Server): Promise<void> {
  return new Promise(resolve => {
    server.close(() => resolve())
    // One that is not answered by now waits for nothing of ours.
    server.closeAllConnections()
  })
}

/** Whether each of the two signatures of a request holds. */
export type Signatures = {
  readonly own: boolean
  readonly standard: boolean
  /** What is wrong, in sentences; null: both hold. */
  readonly fault: string | null
}

/** Checks each by itself, as receivers go by one or the other. */
export async function checkSignatures(
  arrival: Arrival,
  secrets: readonly string[],
): Promise<Signatures> {
  const [own, standard] = await Promise.all([
    faultOf(arrival, OWN, secrets),
    faultOf(arrival, STANDARD, secrets),
  ])
  const faults = [own, standard].filter(fault => fault !== null)
  return {
    ...{ own: own === null, standard: standard === null },
    fault: faults.length === 0 ? null : faults.join(' '),
  }
}

const OWN = { name: 'X-EV-Signature', headers: ['x-ev-signature'] }
const STANDARD = {
  name: 'webhook-signature',
  headers: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
}

async function faultOf(
  { headers, body }: Arrival,
  signature: typeof OWN,
  secrets: readonly string[],
): Promise<string | null> {
  const own = signature.headers.map(name => [name, headers[name]] as const)
  if (own.every(([, value]) => value === undefined)) return `It has no ${signature.name}.`
  try {
    await verifyWebhook(body, Object.fromEntries(own), secrets)
    return null
  } catch (error) {
    return errorMessage(error)
  }
}
