/** One reply of a server (RFC 5321 §4.2). */
export type Reply = {
  /** The code of the last line, which counts if the lines differ, as in Postfix and Exim. */
  readonly code: number
  /**
   * The code of the first line if it is of another class: Postfix's postscreen begins the reply to
   * a client that it then drops with `220-`. Lines of another class are not part of the text.
   */
  readonly firstCode?: number
  /** The enhanced status code (RFC 3463), such as `5.1.1`; null if there is none. */
  readonly enhanced: string | null
  /** The text of all lines without codes, joined by `\n`. As sent: untrusted and not sanitized. */
  readonly text: string
}

/** RFC 5321 §4.5.3.1.5 allows 512 octets; Postfix accepts 2,048. */
const LINE_BYTES_MAX = 2_048
/** Servers with long policy texts send hundreds of lines; an endless `250-` is an attack. */
const REPLY_LINES_MAX = 1_000
/** The memory limit of one reply. */
export const REPLY_BYTES_MAX = 128 * 1_024
const TOO_LONG = `a line beyond ${LINE_BYTES_MAX} bytes`

/**
 * Parses a byte stream, in any chunking, into replies, without using a socket. After a line that is
 * not SMTP or exceeds a limit, `fault` is set and nothing more is parsed.
 */
export class ReplyReader {
  #buffer = ''
  #bytes = 0
  /** The lines of an incomplete reply, with their codes. */
  #lines: string[] = []
  fault: string | null = null

  /** Parses the next bytes and returns the replies that they complete. */
  push(chunk: Uint8Array | string): Reply[] {
    if (this.fault !== null) return []
    // One character per byte: lengths are octets, and a chunk may end within a UTF-8 character.
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : toBuffer(chunk)
    const text = this.#buffer + bytes.toString('latin1')
    const replies: Reply[] = []
    let start = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      let lineEnd = end
      while (lineEnd > start && text.charCodeAt(lineEnd - 1) === CR) lineEnd--
      // As below, or the fault would depend on the chunk in which the line break arrives.
      if (end - start > LINE_BYTES_MAX + 1) this.fault = TOO_LONG
      const reply = this.fault === null ? this.#readLine(text.slice(start, lineEnd)) : null
      start = end + 1
      if (this.fault !== null) break
      if (reply !== null) replies.push(reply)
    }
    this.#buffer = text.slice(text.lastIndexOf('\n') + 1)
    if (this.fault !== null) return replies
    // The CR of a line may have arrived without its LF.
    if (this.#buffer.length > LINE_BYTES_MAX + 1) this.fault = TOO_LONG
    return replies
  }

  /** True if a reply or a line is incomplete. */
  get midway(): boolean {
    return this.#buffer !== '' || this.#lines.length > 0
  }

  #readLine(line: string): Reply | null {
    const known = this.#lines.length === 0 ? KNOWN_LINES.get(line) : undefined
    if (known !== undefined) return known
    this.#bytes += line.length + 2
    if (line.length > LINE_BYTES_MAX) this.fault = TOO_LONG
    else if (this.#bytes > REPLY_BYTES_MAX) this.fault = `a reply beyond ${REPLY_BYTES_MAX} bytes`
    else if (this.#lines.length >= REPLY_LINES_MAX) {
      this.fault = `a reply of more than ${REPLY_LINES_MAX} lines`
    }
    // RFC 5321 §2.3.8: CR is valid only before LF. Another parser would see two lines here.
    else if (line.includes('\r')) this.fault = 'a CR within a line'
    if (this.fault !== null) return null
    const code = codeOf(line)
    if (code === null) {
      this.fault = 'a line that is not an SMTP reply'
      return null
    }
    const isLast = line.charCodeAt(3) !== HYPHEN
    if (isLast && this.#lines.length === 0) {
      this.#bytes = 0
      return toKnownReply(code, line)
    }
    this.#lines.push(line)
    return isLast ? this.#finishReply(code) : null
  }

  #finishReply(code: number): Reply {
    const lines = this.#lines
    this.#lines = []
    this.#bytes = 0
    if (lines.every(line => codeOf(line) === code)) return toReply(code, lines.map(withoutCode))
    const [first = ''] = lines
    const ofCode = lines.filter(line => codeOf(line) === code)
    const ofClass = lines.filter(line => line[0] === ofCode[0]?.[0]).map(withoutCode)
    const reply = toReply(code, ofClass, ofCode[0]?.slice(4))
    return ofClass.length === lines.length ? reply : { ...reply, firstCode: codeOf(first) ?? code }
  }
}

const withoutCode = (line: string) => line.slice(4)

/** Replies of one line: servers answer most commands with the same few. */
const KNOWN_LINES = new Map<string, Reply>()
const KNOWN_LINES_MAX = 1_000
/** Longer lines, and those that name an address, are rarely repeated. */
const KNOWN_LENGTH_MAX = 200

function toKnownReply(code: number, line: string): Reply {
  if (line.length > KNOWN_LENGTH_MAX || line.includes('@'))
    return toReply(code, [withoutCode(line)])
  if (KNOWN_LINES.size >= KNOWN_LINES_MAX) KNOWN_LINES.clear()
  // A slice would keep all data of its read in memory.
  const copy = Buffer.from(line, 'latin1').toString('latin1')
  const known = Object.freeze(toReply(code, [withoutCode(copy)]))
  KNOWN_LINES.set(copy, known)
  return known
}

/** `leading` is the line that starts with the enhanced code. */
function toReply(code: number, lines: readonly string[], leading = lines[0] ?? ''): Reply {
  const enhanced = MAYBE_ENHANCED.test(leading) ? parseEnhanced(leading, code) : null
  const texts = enhanced === null ? lines : lines.map(line => stripEnhanced(line, enhanced))
  return { code, enhanced, text: decode(texts.join('\n')).trim() }
}

const CR = 0x0d
const HYPHEN = 0x2d
const [DIGIT_0, DIGIT_2, DIGIT_5, DIGIT_9] = [0x30, 0x32, 0x35, 0x39]

/** Returns the code of a reply line; null if it has none. */
function codeOf(line: string): number | null {
  const a = line.charCodeAt(0)
  const b = line.charCodeAt(1)
  const c = line.charCodeAt(2)
  const isCode =
    a >= DIGIT_2 && a <= DIGIT_5 && b >= DIGIT_0 && b <= DIGIT_9 && c >= DIGIT_0 && c <= DIGIT_9
  const separator = line[3]
  if (!isCode || !(separator === undefined || separator === ' ' || separator === '-')) return null
  return (a - DIGIT_0) * 100 + (b - DIGIT_0) * 10 + (c - DIGIT_0)
}

/** A view of the same bytes with the methods of a Buffer. */
const toBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const MAYBE_ENHANCED = /^\s{0,3}#?[245]\./

/** RFC 3463 §2; some servers write `#5.1.1`. A class that contradicts the code is ignored. */
function parseEnhanced(line: string, code: number): string | null {
  const match = /^\s{0,3}#?([245])\.(\d{1,3})\.(\d{1,3})(?=[\s:;,-]|$)/.exec(line)
  if (match === null || Number(match[1]) !== Math.floor(code / 100)) return null
  return `${match[1]}.${match[2]}.${match[3]}`
}

function stripEnhanced(line: string, enhanced: string): string {
  const text = line.replace(/^\s{0,3}#?/, '')
  const rest = text.slice(enhanced.length)
  return text.startsWith(enhanced) && !/^\d/.test(rest) ? rest.trimStart() : line
}

/** Decodes bytes as UTF-8 if they are valid, else as Latin-1. */
function decode(bytes: string): string {
  if (!/[\x80-\xff]/.test(bytes)) return bytes
  const text = Buffer.from(bytes, 'latin1').toString('utf8')
  return text.includes('\uFFFD') ? bytes : text
}
