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
import { formatMebibytes } from '../../platform/format.ts'

export type ReceivedRequest = { readonly headers: IncomingHttpHeaders; readonly body: Buffer }

type ServerOptions = {
  readonly host: string
  /** Port to listen on; 0 for a free port. */
  readonly port: number
  /** Status code of the response. */
  readonly status: number
  /** Called with every complete POST before the response is sent. */
  readonly onArrival: (arrival: ReceivedRequest) => Promise<void>
}

interface Receiver {
  readonly port: number
  /** Stops listening and closes all connections. */
  close(): Promise<void>
}

/** Starts a plain HTTP server that accepts every POST. */
export async function startReceiver(options: ServerOptions): Promise<Receiver> {
  const limits = { requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }
  const server = createServer(limits, (request, response) => {
    answer(request, response, options).catch(() => response.destroy())
  })
  await listen(server, options)
  const { port } = server.address() as AddressInfo
  return { port, close: () => closed(server) }
}

/** The timeout of webhook deliveries. */
const REQUEST_MS = 30 * SECOND
/** Far above the size of events, which is a few hundred bytes. */
const BODY_MAX = 1024 * 1024

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { status, onArrival }: ServerOptions,
): Promise<void> {
  if (request.method !== 'POST') {
    response.setHeader('Allow', 'POST')
    return say(response, 405, 'Send events with POST.')
  }
  const body = await bodyOf(request)
  if (body === null) {
    // A kept connection would have to read the rest of the body before the next request.
    response.setHeader('Connection', 'close')
    return say(response, 413, `The body is larger than ${formatMebibytes(BODY_MAX)}.`)
  }
  await onArrival({ headers: request.headers, body })
  say(response, status, 'Received by ev webhooks listen.')
}

function say(response: ServerResponse, status: number, text: string): void {
  response.statusCode = status
  response.setHeader('Content-Type', 'text/plain')
  response.end(`${text}\n`)
}

/** Reads the body; null if it is too large. */
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
      ? 'Another program uses it, perhaps another "ev webhooks listen". Stop that program, or choose another port with --port (0: a free port).'
      : 'Choose another address with --host and --port.'
  const sentence = `Cannot listen on port ${port} of ${host}: ${errorMessage(cause)}. ${remedy}`
  return new EvError('io', sentence, { cause })
}

function closed(server: Server): Promise<void> {
  return new Promise(resolve => {
    server.close(() => resolve())
    // Requests without a response by now are dropped.
    server.closeAllConnections()
  })
}

/** Whether each of the two signatures of a request is valid. */
export type Signatures = {
  readonly own: boolean
  readonly standard: boolean
  /** What is wrong, in sentences; null if both are valid. */
  readonly fault: string | null
}

/** Checks each signature on its own, because receivers use one or the other. */
export async function checkSignatures(
  arrival: ReceivedRequest,
  secrets: readonly string[],
): Promise<Signatures> {
  const [own, standard] = await Promise.all([
    checkSignature(arrival, OWN, secrets),
    checkSignature(arrival, STANDARD, secrets),
  ])
  const faults = [own, standard].filter(fault => fault !== null)
  return {
    own: own === null,
    standard: standard === null,
    fault: faults.length === 0 ? null : faults.join(' '),
  }
}

const OWN = { name: 'X-EV-Signature', headers: ['x-ev-signature'] }
const STANDARD = {
  name: 'webhook-signature',
  headers: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
}

async function checkSignature(
  { headers, body }: ReceivedRequest,
  signature: typeof OWN,
  secrets: readonly string[],
): Promise<string | null> {
  const pairs = signature.headers.map(name => [name, headers[name]] as const)
  if (pairs.every(([, value]) => value === undefined)) return `It has no ${signature.name}.`
  try {
    await verifyWebhook(body, Object.fromEntries(pairs), secrets)
    return null
  } catch (error) {
    return errorMessage(error)
  }
}
