import { deepEqual } from 'node:assert/strict'
import { readEvents, readLines, readObjects, readRecords } from '../../../src/client/stream.ts'
import { type FuzzTarget, splitBytes } from '../target.ts'

const READERS = [readLines, readRecords, readObjects, readEvents]

/** What the client reads from a response is the same in any chunking. */
export const target: FuzzTarget = {
  async fuzz(bytes) {
    for (const read of READERS) {
      deepEqual(
        await collect(read(toBody(splitBytes(bytes)))),
        await collect(read(toBody([bytes]))),
      )
    }
  },
  *seeds() {
    yield 'event: progress\ndata: {"done":1}\n\n: comment\r\n\r\ndata: 2\nid: 3\n\nevent: x\n'
    yield 'email,reason\r\n"a ""b""\r\n@c",ok\r\n'
    yield '{"a":1}\n\n{"b":"ö"}\n[1]'
  },
  lengthMax: 1_024,
}

const toBody = (chunks: readonly Buffer[]) =>
  ReadableStream.from(chunks) as unknown as ReadableStream<Uint8Array>

async function collect(items: AsyncIterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = []
  try {
    for await (const item of items) all.push(item)
  } catch (error) {
    all.push((error as Error).name)
  }
  return all
}
