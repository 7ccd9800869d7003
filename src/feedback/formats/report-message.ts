import PostalMime, { type Email } from 'postal-mime'
import { cleanAddress, isFault, parseAddress } from '../../engine/address/address.ts'
import type { FeedbackInput, FeedbackKind } from '../feedback.ts'
import { parseDiagnostic } from './diagnostic.ts'

/**
 * Bytes and lines of a message that are parsed. A report precedes the returned message, whose rest
 * is not needed. The MIME parser takes about 20 µs per line.
 */
export const MESSAGE_BYTES_MAX = 512 * 1024
const MESSAGE_LINES_MAX = 10_000
/** Parts are nested this deep in real reports; a hostile message nests thousands. */
const NESTING_MAX = 32
/** Most recipients of one report. */
const RECIPIENTS_MAX = 1_000
/** Longest part with fields. */
const FIELDS_LENGTH_MAX = 256 * 1024

/**
 * Parses a delivery status notification (RFC 3464, with international addresses RFC 6533) or an
 * abuse report (RFC 5965). Returns no feedback for any other message. Never throws.
 */
export async function parseReportMessage(
  message: Uint8Array,
  now: number,
): Promise<FeedbackInput[]> {
  const email = await parseMessage(cutMessage(message))
  if (email === null) return []
  const sentAt = toTime(email.date) ?? now
  for (const { mimeType, content } of email.attachments) {
    const fields = decode(content)
    if (DELIVERY_STATUS.test(mimeType)) {
      // A report is sent to the sender of the message (RFC 3464 §1).
      const sender = email.to?.[0]?.address
      const items = parseDeliveryStatus(fields, sentAt, email.text ?? '')
      return sender === undefined ? items : items.map(item => ({ ...item, sender }))
    }
    if (mimeType === 'message/feedback-report') return parseAbuseReport(fields, email, sentAt)
  }
  return []
}

/** RFC 3464 §2.1; with UTF-8 in its fields RFC 6533 §4. */
const DELIVERY_STATUS = /^message\/(?:global-)?delivery-status$/

/** Returns the first bytes and lines. */
function cutMessage(message: Uint8Array): Uint8Array {
  const head = message.subarray(0, MESSAGE_BYTES_MAX)
  let end = -1
  for (let lines = 0; lines < MESSAGE_LINES_MAX; lines++) {
    end = head.indexOf(LINE_FEED, end + 1)
    if (end === -1) return head
  }
  return head.subarray(0, end)
}

const LINE_FEED = 0x0a

async function parseMessage(message: Uint8Array): Promise<Email | null> {
  try {
    return await new PostalMime({
      forceRfc822Attachments: true,
      maxNestingDepth: NESTING_MAX,
    }).parse(message)
  } catch {
    return null
  }
}

/**
 * Parses the fields about the message and about each recipient (RFC 3464 §2). A relayed, expanded
 * or delayed recipient is not an outcome. `notification` is the part that people read.
 */
function parseDeliveryStatus(text: string, sentAt: number, notification: string): FeedbackInput[] {
  const groups = parseFieldGroups(text)
  const [message] = groups
  // Some servers omit the fields about the message, or the empty line after them.
  const reports = groups
    .filter(fields => RECIPIENT_FIELDS.some(name => fields.has(name)))
    .slice(0, RECIPIENTS_MAX)
    .map(readRecipient)
  const expanded = findExpanded(reports)
  const replies = readReplies(notification)
  return reports.flatMap(report => {
    const { action, mailed, final, fields } = report
    const kind = KINDS.get(action)
    const address = mailed !== null && expanded.has(mailed) ? memberOf(report) : mailed
    if (kind === undefined || address === null) return []
    const status = fields.get('status') ?? null
    const quoted = replies.get(final?.toLowerCase() ?? '')
    const diagnostic = parseDiagnostic(fields.get('diagnostic-code') ?? quoted ?? '', status)
    const occurredAt =
      toTime(fields.get('last-attempt-date')) ?? toTime(message?.get('arrival-date')) ?? sentAt
    return [{ address, kind, ...diagnostic, occurredAt }]
  })
}

const RECIPIENT_FIELDS = ['final-recipient', 'original-recipient']

/** Some servers omit the empty line between recipients: one of these fields begins the next. */
const ONCE_PER_RECIPIENT: ReadonlySet<string> = new Set([...RECIPIENT_FIELDS, 'action'])

type RecipientReport = {
  readonly fields: ReadonlyMap<string, string>
  readonly action: string
  /** The address that the message was sent to (RFC 3464 §2.3.1), if the server knows it. */
  readonly mailed: string | null
  /** The address that the server had (§2.3.2): another one if mail is forwarded. */
  readonly final: string | null
  /** The address that the server delivered to, which Sendmail tells apart from the final one. */
  readonly actual: string | null
}

/** Some servers add a comment, as in `failed (permanent failure)`. */
const ACTION = /[a-z]+/i

function readRecipient(fields: ReadonlyMap<string, string>): RecipientReport {
  const original = addressOf(fields.get('original-recipient'))
  const final = addressOf(fields.get('final-recipient')) ?? original
  const isValid = original !== null && !isFault(parseAddress(original))
  return {
    fields,
    action: ACTION.exec(fields.get('action') ?? '')?.[0].toLowerCase() ?? '',
    mailed: isValid ? original : final,
    final,
    actual: addressOf(fields.get('x-actual-recipient')) ?? final,
  }
}

/**
 * Returns the addresses that stand for several recipients. If one of these fails, the message was
 * delivered to the others. Exim repeats the address and does not name its recipients.
 */
function findExpanded(reports: readonly RecipientReport[]): ReadonlySet<string> {
  const found = new Map<string, string | null>()
  const expanded = new Set<string>()
  for (const { action, mailed, actual } of reports) {
    if (mailed === null) continue
    const isRepeated = found.has(mailed) && (actual === mailed || actual !== found.get(mailed))
    if (action === 'expanded' || isRepeated) expanded.add(mailed)
    found.set(mailed, actual)
  }
  return expanded
}

/** Returns the recipient that a mailed address stands for; null if the report does not name it. */
const memberOf = ({ mailed, actual }: RecipientReport) => (actual === mailed ? null : actual)

/**
 * Returns the replies that the notification quotes after an address in lower case, as in
 * `ann@example.com: 550 No such user`. The fields of OpenSMTPD have only the status 5.0.0, whatever
 * the reply.
 */
function readReplies(notification: string): ReadonlyMap<string, string> {
  const replies = new Map<string, string>()
  for (const line of notification.split('\n')) {
    const end = line.indexOf(': ')
    const address = line.slice(0, end).toLowerCase()
    if (address.includes('@') && !replies.has(address)) replies.set(address, line.slice(end + 2))
  }
  return replies
}

/** Actions of RFC 3464 §2.3.3 that are final. */
const KINDS: ReadonlyMap<string, FeedbackKind> = new Map([
  ['failed', 'bounced'],
  // Some servers write another word for it; `error` is of old versions of OpenSMTPD.
  ['failure', 'bounced'],
  ['error', 'bounced'],
  ['delivered', 'delivered'],
])

/** Parses an abuse report (RFC 5965 §3). Without recipient it says nothing about an address. */
function parseAbuseReport(text: string, email: Email, sentAt: number): FeedbackInput[] {
  const fields = parseFieldGroups(text)[0] ?? new Map<string, string>()
  const type = (fields.get('feedback-type') ?? '').trim().toLowerCase()
  if (!['abuse', 'fraud'].includes(type)) return []
  // The one field of a recipient that a report may repeat (RFC 5965 §3.2).
  const named = [...unfold(text).matchAll(/^original-rcpt-to[ \t]*:(.*)$/gim)]
  const recipients = named.map(([, value]) => addressOf(value))
  const received = fields.get('arrival-date') ?? fields.get('received-date')
  const occurredAt = toTime(received) ?? sentAt
  const addresses = recipients.some(address => address !== null) ? recipients : [recipientOf(email)]
  return [...new Set(addresses)]
    .filter(address => address !== null)
    .filter(address => !REDACTED.test(address))
    .slice(0, RECIPIENTS_MAX)
    .map(address => ({ address, kind: 'complained', occurredAt }))
}

/** The address that AOL and others write in place of the recipient (RFC 6590). */
const REDACTED = /^redacted@/i

/** The recipient of the reported message, which is the last part of the report. */
function recipientOf({ attachments }: Email): string | null {
  const original = attachments.find(({ mimeType }) => ORIGINAL.test(mimeType))
  if (original === undefined) return null
  const headers = parseFieldGroups(decode(original.content))[0]
  return addressOf(headers?.get('x-original-to'), headers?.get('to'))
}

/** RFC 6522; with UTF-8 in its header RFC 6532 §3.7 and RFC 6533 §5. */
const ORIGINAL = /^(?:message\/rfc822|text\/rfc822-headers|message\/global(?:-headers)?)$/

/** Parses groups of header fields (RFC 822 syntax), which empty lines separate. */
function parseFieldGroups(text: string): Map<string, string>[] {
  const groups: Map<string, string>[] = []
  let fields: Map<string, string> | null = null
  for (const line of unfold(text).split('\n')) {
    if (line.trim() === '') fields = null
    const colon = line.indexOf(':')
    if (colon <= 0) continue
    const name = line.slice(0, colon).trim().toLowerCase()
    if (fields === null || (ONCE_PER_RECIPIENT.has(name) && fields.has(name))) {
      fields = new Map()
      groups.push(fields)
    }
    if (!fields.has(name)) fields.set(name, line.slice(colon + 1).trim())
  }
  return groups
}

/** Joins the lines of each header field (RFC 5322 §2.2.3). */
const unfold = (text: string) =>
  text
    .slice(0, FIELDS_LENGTH_MAX)
    .replace(/\r\n?/g, '\n')
    .replace(/\n[ \t]+(?=\S)/g, ' ')

/** Returns the first address in fields such as `rfc822; ann@example.com`. */
function addressOf(...fields: (string | undefined)[]): string | null {
  for (const field of fields) {
    const [, type, text = ''] = TYPED.exec((field ?? '').slice(0, 1_000)) ?? []
    const written = /<([^<>\s]{3,320})>/.exec(text)?.[1] ?? text.trim()
    const decoded = type?.toLowerCase() === 'utf-8' ? decodeEscapes(written) : written
    const address = cleanAddress(decoded).text
    if (address.includes('@') && !NEVER_IN_ADDRESS.test(address)) return address
  }
  return null
}

/** An address type (RFC 3464 §2.1.2), if there is one, and the rest. Mimecast writes `rfc/822`. */
const TYPED = /^\s*(?:([\w/-]+)\s*;)?(.*)/s

/** White space and control characters. */
const NEVER_IN_ADDRESS = /[\s\p{Cc}]/u

/** Decodes the escapes of the address type `utf-8`, such as `\x{FC}` for ü (RFC 6533 §3). */
const decodeEscapes = (text: string) =>
  text.replace(/\\x\{([0-9a-f]{2,6})\}/gi, (written, hex: string) => {
    const point = Number.parseInt(hex, 16)
    return isCharacter(point) ? String.fromCodePoint(point) : written
  })

/** Half of a surrogate pair is not a character (Unicode, D76). */
const isCharacter = (point: number) => point <= 0x10ffff && (point < 0xd800 || point > 0xdfff)

function toTime(text: string | undefined): number | null {
  const time = Date.parse((text ?? '').slice(0, 100))
  return Number.isNaN(time) ? null : time
}

const decode = (content: ArrayBuffer | Uint8Array | string) =>
  typeof content === 'string' ? content : new TextDecoder().decode(content)
