import { TextDecoder } from 'node:util'
import { SaxesParser } from 'saxes'
import { yieldToEventLoop } from '../platform/clock.ts'

/** Receives the content of a document; names are without their prefix. */
type XmlHandler = {
  open(name: string, attributes: Readonly<Record<string, string>>): void
  close?(name: string): void
  text?(text: string): void
}

/** Worksheets have a depth of 7; unbounded, a stack of open elements fills the memory. */
const DEPTH_MAX = 100
/**
 * Length of one tag or text in UTF-16 units, which the parser holds in memory. A cell has at most
 * 32,767 characters ("Excel specifications and limits"), each of up to six as an entity.
 */
const TOKEN_LENGTH_MAX = 1024 * 1024

/**
 * Parses one part of a workbook. Throws for malformed XML, and for a document type declaration:
 * workbooks have none, and entities declared in one could expand without bound.
 */
export async function parseXml(
  bytes: AsyncIterable<Uint8Array>,
  handler: XmlHandler,
): Promise<void> {
  for await (const _ of parseXmlInSteps(bytes, handler));
}

/**
 * Length of the text that is parsed at once. It bounds what the handler collects before the caller
 * can take it, such as cells that repeat a long text, and the time until other work gets its turn.
 */
const PIECE_LENGTH = 4_096

/** Parses like `parseXml`, and yields after each piece, so that the caller can take what it has. */
export async function* parseXmlInSteps(
  bytes: AsyncIterable<Uint8Array>,
  handler: XmlHandler,
): AsyncGenerator<void> {
  let pendingLength = 0
  const parser = createParser(handler, () => {
    pendingLength = 0
  })
  let decoder: TextDecoder | null = null
  for await (const chunk of joinStart(bytes)) {
    decoder ??= new TextDecoder(encodingOf(chunk))
    const text = decoder.decode(chunk, { stream: true })
    for (let at = 0; at < text.length; at += PIECE_LENGTH) {
      const piece = text.slice(at, at + PIECE_LENGTH)
      pendingLength += piece.length
      parser.write(piece)
      if (pendingLength > TOKEN_LENGTH_MAX) throw new Error('a tag or text is too long')
      yield
      // Otherwise buffered chunks are parsed in one turn of the event loop.
      await yieldToEventLoop()
    }
  }
  parser.write(decoder?.decode() ?? '').close()
}

function createParser(handler: XmlHandler, onToken: () => void) {
  const parser = new SaxesParser({ xmlns: false, position: false })
  let depth = 0
  parser.on('error', error => {
    throw error
  })
  parser.on('doctype', () => {
    throw new Error('it has a document type declaration')
  })
  parser.on('opentag', ({ name, attributes }) => {
    onToken()
    depth += 1
    if (depth > DEPTH_MAX) throw new Error('its elements are nested too deeply')
    handler.open(localName(name), attributes)
  })
  parser.on('closetag', ({ name }) => {
    onToken()
    depth -= 1
    handler.close?.(localName(name))
  })
  const onText = (text: string) => {
    onToken()
    handler.text?.(text)
  }
  parser.on('text', onText)
  parser.on('cdata', onText)
  return parser
}

const localName = (name: string) => name.slice(name.indexOf(':') + 1)

/** Length of the byte order mark of UTF-16. */
const MARK_BYTES = 2

/** Yields the same bytes, the first time at least those that tell the encoding. */
async function* joinStart(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let start: Uint8Array | null = new Uint8Array()
  for await (const chunk of bytes) {
    if (start === null) {
      yield chunk
      continue
    }
    start = Buffer.concat([start, chunk])
    if (start.length < MARK_BYTES) continue
    yield start
    start = null
  }
  if (start !== null) yield start
}

/** Parts are UTF-8 or UTF-16 (ECMA-376 part 2, §8.1.4). */
function encodingOf([first, second]: Uint8Array): string {
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  return first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8'
}
