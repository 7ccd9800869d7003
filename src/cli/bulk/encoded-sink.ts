import { once } from 'node:events'
import { PassThrough, type Readable, type Writable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { zipSheet } from '../../formats/sheet-writer.ts'
import { isGzip } from './output-plan.ts'
import type { OutputSink } from './output-sink.ts'
import type { Format } from './row-text.ts'

type Encoder = { readonly input: Writable; readonly output: Readable }

/** Returns a sink that compresses what it is given, if the format or the name of the file says so. */
export function encodeSink(
  sink: OutputSink,
  { path, format }: { readonly path: string; readonly format: Format | undefined },
): OutputSink {
  if (format === 'xlsx') {
    const input = new PassThrough()
    return encode(sink, { input, output: zipSheet(input) })
  }
  if (!isGzip(path)) return sink
  const gzip = createGzip()
  return encode(sink, { input: gzip, output: gzip })
}

function encode(sink: OutputSink, { input, output }: Encoder): OutputSink {
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
