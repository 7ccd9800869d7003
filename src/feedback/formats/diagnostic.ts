/** The codes and the text of an SMTP reply in a diagnostic text. */
type Diagnostic = {
  readonly code: number | null
  readonly enhancedCode: string | null
  readonly text: string
}

/** Longer texts are cut before they are matched. */
const LENGTH_MAX = 2_000

/**
 * Parses a diagnostic text, such as `smtp; 550 5.1.1 <ann@example.com>: user unknown` (RFC 3464
 * §2.3.6). `status` is the enhanced code that another field states. It counts only without a reply:
 * beside one, it may be what the reporting server makes of the basic code, as Sendmail makes 5.1.1 of
 * each 550. Of a text in which a gateway quotes a reply, only the reply is returned.
 */
export function parseDiagnostic(raw: string, status: string | null = null): Diagnostic {
  const text = raw
    .slice(0, LENGTH_MAX)
    .replace(/^\s*(?:smtp|x-[\w-]{1,40})\s*;\s*/i, '')
    .trim()
  const quoted = QUOTED_REPLY.exec(text) ?? REPLY_AFTER_ARROW.exec(text)
  if (quoted !== null) return parseReply(`${quoted[1]} ${quoted[2]}`)
  if (LABEL.test(text)) return { code: null, enhancedCode: null, text }
  return parseReply(text, status)
}

function parseReply(text: string, status: string | null = null): Diagnostic {
  const code = CODE.exec(text)
  const rest = code === null ? text : text.slice(code[0].length)
  const enhanced = ENHANCED.exec(rest) ?? ENHANCED_ANYWHERE.exec(text)
  return {
    code: code?.[1] === undefined ? null : Number(code[1]),
    enhancedCode: enhanced?.[1] ?? (code === null ? toEnhancedCode(status) : null),
    text: rest.replace(ENHANCED, '').trim(),
  }
}

/**
 * A reply that a gateway quotes after its own words, as Cisco Secure Email does: `5.1.0 - Unknown
 * address error 550-'5.7.1 Access denied' (delivery attempts: 0)`. The label and the status of the
 * report are the same for every refusal of a recipient.
 */
const QUOTED_REPLY = /^[^'"]{0,200}?\b([45]\d\d)[- ]?['"](.*)['"]\s*(?:\([^()]*\)\s*)?$/s
/** `Remote server returned unknown recipient or mailbox unavailable -> 550 Refused` (Microsoft 365). */
const REPLY_AFTER_ARROW = /^.* -> ([45]\d\d)[- ](.*)$/s
/** The words of such a gateway where no server replied: `5.4.7 - Delivery expired 'timeout'`. */
const LABEL = /^[245]\.\d{1,3}\.\d{1,3} - /

/**
 * Some servers repeat who said it: `host mx.example.com said: 550 …`, `SMTP error from remote mail
 * server after RCPT TO:<ann@example.com>: 550 …`, `Remote server returned '550 …'`, `RCPT TO said 550 …`.
 */
const CODE =
  /^(?:[^\n]{0,250}?(?:: |(?:returned|said):? ['"]?|<<< |smtp; ?))?([45]\d\d)(?=[\s-]|$)[\s-]?/
const ENHANCED = /^\s*#?([245]\.\d{1,3}\.\d{1,3})(?=[\s:;,)]|$)\s*/
const ENHANCED_ANYWHERE = /(?:^|[\s(#])([45]\.\d{1,3}\.\d{1,3})(?=[\s:;,)]|$)/

/** `5.1.1 (bad destination mailbox address)` becomes `5.1.1`. */
function toEnhancedCode(status: string | null): string | null {
  return /^\s*([245]\.\d{1,3}\.\d{1,3})(?=[\s(]|$)/.exec(status ?? '')?.[1] ?? null
}
