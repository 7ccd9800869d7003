import { isoTime } from '../../engine/verdict/present-result.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Arrival, Signatures } from './server.ts'

/** What came in, and how it was taken. */
export type Taken = {
  readonly arrival: Arrival
  readonly signatures: Signatures
  /** Epoch ms. */
  readonly at: number
  /** What it was answered. */
  readonly status: number
}

/** An event in two lines for people. Anybody on this machine may post, so all of it is foreign text. */
export function eventText({ arrival, signatures, at, status }: Taken): string {
  const { event, event_id, sandbox, data } = fieldsOf(arrival)
  const facts = [
    clockText(at),
    wordOf(event, 'no event'),
    wordOf(event_id, '–'),
    ...(sandbox === true ? ['sandbox'] : []),
    signaturesText(signatures),
    ...(status >= 200 && status < 300 ? [] : [`answered ${status}`]),
  ]
  const shown = data === undefined ? textOf(arrival) : JSON.stringify(data)
  return `${facts.join('  ')}\n          ${sanitizeText(shown, DATA_MAX)}\n`
}

/** The same whole, in one line for programs. */
export function eventLine({ arrival, signatures, at, status }: Taken): string {
  const { event, event_id } = fieldsOf(arrival)
  const line = {
    received_at: isoTime(at),
    event: typeof event === 'string' ? event : null,
    event_id: typeof event_id === 'string' ? event_id : null,
    answered: status,
    signatures: { 'x-ev-signature': signatures.own, 'webhook-signature': signatures.standard },
    fault: signatures.fault,
    headers: arrival.headers,
    body: bodyOf(arrival),
  }
  return `${JSON.stringify(line)}\n`
}

/** While a secret is replaced one of them may hold alone. */
function signaturesText({ own, standard, fault }: Signatures): string {
  if (fault === null) return 'both signatures hold'
  const held = own ? 'X-EV-Signature holds.' : standard ? 'webhook-signature holds.' : null
  return `${held ?? 'NOT TO BE BELIEVED:'} ${sanitizeText(fault)}`
}

/** Two or three lines of a terminal. */
const DATA_MAX = 240

const wordOf = (value: unknown, otherwise: string) =>
  typeof value === 'string' ? sanitizeText(value, WORD_MAX) : otherwise

const WORD_MAX = 64

function fieldsOf(arrival: Arrival): Readonly<Record<string, unknown>> {
  const body = bodyOf(arrival)
  return typeof body === 'object' && body !== null ? { ...body } : {}
}

const textOf = ({ body }: Arrival) => body.toString('utf8')

/** What is no JSON stays text. */
function bodyOf(arrival: Arrival): unknown {
  const text = textOf(arrival)
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** As clocks in its place show it: 17:46:02. */
function clockText(at: number): string {
  const time = new Date(at)
  const deps = [time.getHours(), time.getMinutes(), time.getSeconds()]
  return deps.map(part => String(part).padStart(2, '0')).join(':')
}
