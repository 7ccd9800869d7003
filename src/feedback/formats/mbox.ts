import { MESSAGE_BYTES_MAX } from './report-message.ts'

/**
 * Splits an mbox file into messages. A line `From ` at the start or after an empty line starts a
 * message; `>From ` is unescaped. Of a message, `MESSAGE_BYTES_MAX` bytes are kept.
 */
export async function* splitMbox(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let lines: string[] = []
  let length = 0
  let isAfterEmptyLine = true
  let hasStarted = false
  const take = () => {
    const message = Buffer.from(lines.join('\n'), 'latin1')
    lines = []
    length = 0
    return message
  }
  for await (const line of readLines(source)) {
    if (isAfterEmptyLine && line.startsWith('From ')) {
      const message = take()
      if (hasStarted) yield message
      hasStarted = true
    } else if (hasStarted && length <= MESSAGE_BYTES_MAX) {
      lines.push(line.replace(/^>(>*From )/, '$1'))
      length += line.length + 1
    }
    isAfterEmptyLine = line === ''
  }
  if (hasStarted) yield take()
}

/** Longest line that is kept: a longer one is cut, so that a file of one line needs no memory. */
const LINE_LENGTH_MAX = 1024 * 1024

/** Reads lines with one character per byte. */
export async function* readLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of source) {
    const lines = Buffer.from(chunk).toString('latin1').split('\n')
    lines[0] = rest + (lines[0] ?? '')
    rest = (lines.pop() ?? '').slice(0, LINE_LENGTH_MAX)
    for (const line of lines) yield line.endsWith('\r') ? line.slice(0, -1) : line
  }
  if (rest !== '') yield rest
}
