import { deepEqual } from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { receiveForm } from '../../../src/jobs/import/multipart-form.ts'
import { UploadFault } from '../../../src/jobs/import/store-upload.ts'
import { type FuzzTarget, splitBytes } from '../target.ts'

const CONTENT_TYPE = 'multipart/form-data; boundary=x'
const RULES = { fileFields: ['file', 'list'] as const, fileBytesMax: 1_000 }

const folder = mkdtempSync(join(tmpdir(), 'ev-fuzz-form-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

/** A form is refused with a sentence, or has the same fields and file in any chunking. */
export const target: FuzzTarget = {
  async fuzz(bytes) {
    deepEqual(await receive(splitBytes(bytes)), await receive([bytes]))
  },
  *seeds() {
    const file = part('name="file"; filename="a.csv"', 'email\nann@mail.example\n')
    yield `${part('name="name"', 'List')}${file}${END}`
    yield `${part('name="list"; filename=""', '')}${part('name="list"', 'ann@mail.example')}${END}`
    yield `${file}${file}${END}`
    yield `${part('name="file"; filename*=UTF-8\'\'%C3%A4.csv', 'a')}${END}`
  },
  lengthMax: 2_048,
}

const END = '--x--\r\n'
const part = (disposition: string, content: string) =>
  `--x\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`

async function receive(chunks: readonly Buffer[]) {
  const path = join(folder, 'form')
  const body = ReadableStream.from(chunks.map(chunk => new Uint8Array(chunk)))
  const request = {
    body: body as ReadableStream<Uint8Array<ArrayBuffer>>,
    headers: new Headers({ 'Content-Type': CONTENT_TYPE }),
    signal: AbortSignal.any([]),
  }
  try {
    const form = await receiveForm(request, path, RULES)
    return { ...form, content: readFileSync(path, 'latin1') }
  } catch (error) {
    if (!(error instanceof UploadFault)) throw error
    // Which of several faults is met first depends on the chunks.
    return 'refused'
  }
}
