/** One reply of a server (RFC 5321 §4.2). */
export type Reply = {
  readonly code: number
  /** Enhanced status code of RFC 3463, such as `5.1.1`; null where the server gave none. */
  readonly enhanced: string | null
  /** The text of all lines without their codes, joined by `\n`; as sent, so foreign and unclean. */
  readonly text: string
}

/** RFC 5321 §4.5.3.1.5 grants 512 octets; Postfix keeps 2,048, and so do we. */
const LINE_BYTES_MAX = 2_048
/** Servers with long policy texts send hundreds of lines; an endless `250-` is an attack. */
const REPLY_LINES_MAX = 1_000
/** What one reply may cost in memory. */
export const REPLY_BYTES_MAX = 128 * 1_024
const TOO_LONG = `a line beyond ${LINE_BYTES_MAX} bytes`

/**
 * Turns a stream of bytes, in any chunking, into replies; knows no socket. After a line that is not
 * SMTP, or one beyond a limit, `fault` says what was wrong and nothing more is read.
 */
export class ReplyReader {
  #rest = ''
  #bytes = 0
  #lines: string[] = []
  #code = 0
  fault: string | null = null

  /** Takes the next bytes and gives the replies they complete. */
  push(chunk: Uint8Array | string): Reply[] {
    if (this.fault !== null) return []
    // One character a byte, so that lengths are octets and a chunk may end within a UTF-8 character.
    const text =
      typeof chunk === 'string'
        ? Buffer.from(chunk).toString('latin1')
        : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1')
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() as string
    const replies: Reply[] = []
    for (const line of lines) {
      const reply = this.#line(line.replace(/\r+$/, ''))
      if (this.fault !== null) return replies
      if (reply !== null) replies.push(reply)
    }
    // The CR of a line may have come without its LF.
    if (this.#rest.length > LINE_BYTES_MAX + 1) this.fault = TOO_LONG
    return replies
  }

  /** True in the middle of a reply or a line. */
  get midway(): boolean {
    return this.#rest !== '' || this.#lines.length > 0
  }

  #line(line: string): Reply | null {
    this.#bytes += line.length + 2
    if (line.length > LINE_BYTES_MAX) this.fault = TOO_LONG
    else if (this.#bytes > REPLY_BYTES_MAX) this.fault = `a reply beyond ${REPLY_BYTES_MAX} bytes`
    else if (this.#lines.length >= REPLY_LINES_MAX) {
      this.fault = `a reply of more than ${REPLY_LINES_MAX} lines`
    }
    // RFC 5321 §2.3.8: CR stands only before LF. Another reader would see two lines here.
    else if (line.includes('\r')) this.fault = 'a CR within a line'
    if (this.fault !== null) return null
    const separator = line[3]
    if (!/^[2-5]\d\d/.test(line) || !(separator === undefined || ' -'.includes(separator))) {
      this.fault = 'a line that is not an SMTP reply'
      return null
    }
    const code = Number(line.slice(0, 3))
    if (this.#lines.length > 0 && code !== this.#code) {
      this.fault = 'a reply of lines with different codes'
      return null
    }
    this.#code = code
    this.#lines.push(line.slice(4))
    return separator === '-' ? null : this.#finish(code)
  }

  #finish(code: number): Reply {
    const lines = this.#lines
    this.#lines = []
    this.#bytes = 0
    const enhanced = enhancedOf(lines[0] as string, code)
    const texts = enhanced === null ? lines : lines.map(line => withoutCode(line, enhanced))
    return { code, enhanced, text: decode(texts.join('\n')).trim() }
  }
}

/** RFC 3463 §2; some servers write `#5.1.1`. A class that contradicts the code is no evidence. */
function enhancedOf(line: string, code: number): string | null {
  const match = /^\s{0,3}#?([245])\.(\d{1,3})\.(\d{1,3})(?=[\s:;,-]|$)/.exec(line)
  if (match === null || Number(match[1]) !== Math.floor(code / 100)) return null
  return `${match[1]}.${match[2]}.${match[3]}`
}

function withoutCode(line: string, enhanced: string): string {
  const bare = line.replace(/^\s{0,3}#?/, '')
  const rest = bare.slice(enhanced.length)
  return bare.startsWith(enhanced) && !/^\d/.test(rest) ? rest.trimStart() : line
}

/** Bytes to text: UTF-8 where it is, else Latin-1. */
function decode(bytes: string): string {
  if (!/[\x80-\xff]/.test(bytes)) return bytes
  const text = Buffer.from(bytes, 'latin1').toString('utf8')
  return text.includes('\uFFFD') ? bytes : text
}
