import { once } from 'node:events'
import { PassThrough, type Readable, type Writable } from 'node:stream'
import { createGzip } from 'node:zlib'
import type { TextEncoding } from '../../csv/encoder.ts'
import { isGzip } from './output-plan.ts'
import type { OutputSink } from './output-sink.ts'
import type { Format } from './row-text.ts'

type Encoder = { readonly input: Writable; readonly output: Readable }

type SinkForm = {
  readonly path: string
  readonly format: Format | undefined
  /** The encoding of the text; null for UTF-8. */
  readonly encode: TextEncoding | null
}

/** Text has a character that its encoding does not have. */
export class UnknownCharacter extends Error {}

/** Returns a sink that encodes text, and compresses it if the format or the name of the file says so. */
export async function encodeSink(
  sink: OutputSink,
  { path, format, encode }: SinkForm,
): Promise<OutputSink> {
  const bytes = await compressSink(sink, { path, format })
  if (encode === null) return bytes
  return {
    ...bytes,
    write(data) {
      const encoded = typeof data === 'string' ? encode(data) : data
      return encoded === null ? Promise.reject(new UnknownCharacter()) : bytes.write(encoded)
    },
  }
}

async function compressSink(
  sink: OutputSink,
  { path, format }: Omit<SinkForm, 'encode'>,
): Promise<OutputSink> {
  if (format === 'xlsx') {
    const { zipSheet } = await import('../../formats/sheet-zip.ts')
    const input = new PassThrough()
    return transform(sink, { input, output: zipSheet(input) })
  }
  if (!isGzip(path)) return sink
  const gzip = createGzip()
  return transform(sink, { input: gzip, output: gzip })
}

function transform(sink: OutputSink, { input, output }: Encoder): OutputSink {
  const written = writeAll(sink, output)
  // The next write or `close` throws the error.
  input.on('error', () => {})
  written.catch(error => input.destroy(error))
  return {
    async write(data) {
      if (input.write(data)) return
      await Promise.race([once(input, 'drain'), written])
    },
    async close() {
      input.end()
      await written
      await sink.close()
    },
    publish: () => sink.publish(),
    async discard() {
      input.destroy()
      output.destroy()
      await sink.discard()
    },
  }
}

async function writeAll(sink: OutputSink, output: Readable): Promise<void> {
  for await (const chunk of output) await sink.write(chunk)
}
