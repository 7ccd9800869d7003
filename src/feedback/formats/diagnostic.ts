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
 * §2.3.6). `status` is the enhanced code that another field states.
 */
export function parseDiagnostic(raw: string, status: string | null = null): Diagnostic {
  const text = raw
    .slice(0, LENGTH_MAX)
    .replace(/^\s*(?:smtp|x-[\w-]{1,40})\s*;\s*/i, '')
    .trim()
  const code = CODE.exec(text)
  const rest = code === null ? text : text.slice(code[0].length)
  const enhanced = ENHANCED.exec(rest) ?? ENHANCED_ANYWHERE.exec(text)
  return {
    code: code?.[1] === undefined ? null : Number(code[1]),
    enhancedCode: enhanced?.[1] ?? toEnhancedCode(status),
    text: rest.replace(ENHANCED, '').trim() || text,
  }
}

/** Some servers repeat who said it: `host mx.example.com said: 550 …`. */
const CODE = /^(?:[^\n]{0,200}? said: )?([45]\d\d)(?=[\s-]|$)[\s-]?/
const ENHANCED = /^\s*#?([245]\.\d{1,3}\.\d{1,3})(?=[\s:;,)]|$)\s*/
const ENHANCED_ANYWHERE = /(?:^|[\s(#])([45]\.\d{1,3}\.\d{1,3})(?=[\s:;,)]|$)/

/** `5.1.1 (bad destination mailbox address)` becomes `5.1.1`. */
function toEnhancedCode(status: string | null): string | null {
  return /^\s*([245]\.\d{1,3}\.\d{1,3})(?=[\s(]|$)/.exec(status ?? '')?.[1] ?? null
}
