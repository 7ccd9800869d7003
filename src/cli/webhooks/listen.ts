import { isoTime } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { CliContext } from '../context.ts'
import { EXIT_CODES } from '../exit.ts'
import { onStopSignal, SIGNALS_WITH_HANGUP, sayStopping } from '../stop-signals.ts'
import { terminalWidth, wrapLines } from '../width.ts'
import { openWebhooks } from './backend.ts'
import {
  type ListenFlags,
  type ListenOptions,
  listenBanner,
  register,
  toListenOptions,
  unregister,
} from './listen-input.ts'
import {
  checkSignatures,
  type ReceivedRequest,
  type Signatures,
  startReceiver,
} from './listen-server.ts'

/** Runs `ev webhooks listen` and returns the exit code. */
export async function listenCommand(context: CliContext, flags: ListenFlags): Promise<number> {
  const input = toListenOptions(flags, context.env)
  const { exitCode, dispose } = untilStopped(context)
  try {
    return await listen(context, { flags, input }, exitCode)
  } finally {
    dispose()
  }
}

type ListenInput = {
  readonly flags: ListenFlags
  readonly input: ListenOptions
}

async function listen(
  context: CliContext,
  { flags, input }: ListenInput,
  exitCode: Promise<number>,
): Promise<number> {
  const secrets = [...(input.secrets ?? [])]
  const receiver = await startReceiver({
    host: input.host,
    port: input.port,
    status: input.status,
    onArrival: arrival => show(context, arrival, secrets, input),
  })
  try {
    const url = `http://${input.urlHost}:${receiver.port}/`
    const { publicUrl } = input
    const backend = input.secrets === null ? await openWebhooks(context, flags) : null
    const registration =
      backend === null ? null : await register(backend, { url, publicUrl, account: flags.account })
    if (registration !== null) secrets.push(registration.secret)
    const width = terminalWidth(context, context.stderr)
    const banner = listenBanner({ url, options: input, registration })
    // Indented lines are commands to copy.
    context.stderr.write(banner.replace(/^\S.*$/gm, line => wrapLines(line, width)))
    const code = await exitCode
    if (backend !== null && registration !== null) {
      sayStopping(context, 'deleting the webhook')
      await unregister(backend, registration)
    }
    return code
  } finally {
    await receiver.close()
  }
}

async function show(
  context: CliContext,
  arrival: ReceivedRequest,
  secrets: readonly string[],
  { isJson, status }: ListenOptions,
): Promise<void> {
  const at = context.clock.now()
  const received = { arrival, at, status, signatures: await checkSignatures(arrival, secrets) }
  context.stdout.write(isJson ? eventLine(received) : eventText(received))
}

type StopWait = { readonly exitCode: Promise<number>; readonly dispose: () => void }

/**
 * Resolves with the exit code: 0 at the first signal, which is the normal way to stop, or an error
 * if stdout is closed. A second signal exits at once.
 */
function untilStopped(context: CliContext): StopWait {
  const { stdout } = context
  // The default listeners would exit at once and leave the webhook behind.
  stdout.removeAllListeners('error')
  const { promise: exitCode, resolve } = Promise.withResolvers<number>()
  const force = () => context.exit(EXIT_CODES.interrupted)
  const dispose = onStopSignal(context, () => resolve(0), force, SIGNALS_WITH_HANGUP)
  stdout.on('error', () => resolve(EXIT_CODES.io))
  return { exitCode, dispose }
}

/** A received request with the result of its signature check. */
type ReceivedEvent = {
  readonly arrival: ReceivedRequest
  readonly signatures: Signatures
  /** Time of receipt, epoch ms. */
  readonly at: number
  /** Status code of the response. */
  readonly status: number
}

/** Formats an event in two lines. Any local process can post, so all fields are sanitized. */
export function eventText({ arrival, signatures, at, status }: ReceivedEvent): string {
  const { event, event_id, sandbox, data } = bodyFields(arrival)
  const facts = [
    clockText(at),
    shortText(event, 'no event'),
    shortText(event_id, '–'),
    ...(sandbox === true ? ['sandbox'] : []),
    signaturesText(signatures),
    ...(status >= 200 && status < 300 ? [] : [`responded ${status}`]),
  ]
  const shown = data === undefined ? bodyText(arrival) : JSON.stringify(data)
  return `${facts.join('  ')}\n          ${sanitizeText(shown, DATA_MAX)}\n`
}

/** Formats an event in a single line of JSON. */
export function eventLine({ arrival, signatures, at, status }: ReceivedEvent): string {
  const { event, event_id } = bodyFields(arrival)
  const line = {
    received_at: isoTime(at),
    event: typeof event === 'string' ? event : null,
    event_id: typeof event_id === 'string' ? event_id : null,
    answered: status,
    signatures: { 'x-ev-signature': signatures.own, 'webhook-signature': signatures.standard },
    fault: signatures.fault,
    headers: arrival.headers,
    body: parseBody(arrival),
  }
  return `${JSON.stringify(line)}\n`
}

/** During the grace period of a rotated secret, only one of the signatures may be valid. */
function signaturesText({ own, standard, fault }: Signatures): string {
  if (fault === null) return 'both signatures valid'
  const valid = own ? 'X-EV-Signature valid.' : standard ? 'webhook-signature valid.' : null
  return `${valid ?? 'SIGNATURE NOT VALID:'} ${sanitizeText(fault)}`
}

/** Two or three lines of a terminal. */
const DATA_MAX = 240

const shortText = (value: unknown, otherwise: string) =>
  typeof value === 'string' ? sanitizeText(value, WORD_MAX) : otherwise

const WORD_MAX = 64

function bodyFields(arrival: ReceivedRequest): Readonly<Record<string, unknown>> {
  const body = parseBody(arrival)
  return typeof body === 'object' && body !== null ? { ...body } : {}
}

const bodyText = ({ body }: ReceivedRequest) => body.toString('utf8')

/** Returns the parsed JSON body, or the text if it is not JSON. */
function parseBody(arrival: ReceivedRequest): unknown {
  const text = bodyText(arrival)
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Formats a time of day in the local time zone: 17:46:02. */
function clockText(at: number): string {
  const time = new Date(at)
  const parts = [time.getHours(), time.getMinutes(), time.getSeconds()]
  return parts.map(part => String(part).padStart(2, '0')).join(':')
}
