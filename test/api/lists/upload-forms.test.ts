import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { fileForms } from '../../../src/api/lists/upload.ts'
import { clearUploads } from '../../../src/jobs/import/multipart-form.ts'
import { tempFolder } from '../../support/database.ts'
import { FORM, form } from '../../support/list-form.ts'
import { countedRandom } from '../../support/random.ts'

describe('the folder of uploads', () => {
  const request = (body: Uint8Array, headers: Readonly<Record<string, string>> = {}) =>
    new Request('https://ev.test/v1/verify/file', {
      method: 'POST',
      headers: { 'Content-Type': FORM, ...headers },
      body: body as Uint8Array<ArrayBuffer>,
    })

  test('accepts no file and no form beyond its limit, and stores nothing of it', async () => {
    const dataDir = tempFolder()
    const receive = fileForms(dataDir, countedRandom(), 1_000)
    const tooLong = form([['file', { file: 'x'.repeat(1_001) }]])
    await expect(receive(request(tooLong))).rejects.toMatchObject({ code: 'payload_too_large' })
    const preamble = Buffer.concat([Buffer.alloc(140_000, 'x'), form([['file', { file: 'x' }]])])
    await expect(receive(request(preamble))).rejects.toMatchObject({ code: 'payload_too_large' })
    expect(readdirSync(join(dataDir, 'uploads'))).toEqual([])
    const just = await receive(request(form([['file', { file: 'x'.repeat(1_000) }]])))
    expect(readdirSync(join(dataDir, 'uploads'))).toHaveLength(1)
    await just.discard()
  })

  test('accepts a compressed form within the limit of the expanded form', async () => {
    const dataDir = tempFolder()
    const receive = fileForms(dataDir, countedRandom(), 1_000)
    const send = (bytes: number) =>
      receive(
        request(gzipSync(form([['file', { file: Buffer.alloc(bytes) }]])), {
          'Content-Encoding': 'gzip',
        }),
      )
    await expect(send(1_001)).rejects.toMatchObject({ code: 'payload_too_large' })
    await expect(send(1_000_000)).rejects.toMatchObject({ code: 'payload_too_large' })
    expect(readdirSync(join(dataDir, 'uploads'))).toEqual([])
    const just = await send(1_000)
    expect(readdirSync(join(dataDir, 'uploads'))).toHaveLength(1)
    await just.discard()
  })

  test('that cannot be written to is a temporary failure of the service', async () => {
    const dataDir = tempFolder()
    const receive = fileForms(dataDir, countedRandom())
    writeFileSync(join(dataDir, 'uploads'), 'a file in its place')
    await expect(receive(request(form([['file', { file: 'x' }]])))).rejects.toMatchObject({
      code: 'service_unavailable',
      retryAfterS: 5,
    })
  })

  test.each([
    ['few bytes', 10],
    ['more bytes than are buffered', 2_000_000],
  ])('on a full disk refuses %s at once, and stores nothing', async (_, length) => {
    const dataDir = tempFolder()
    const receive = fileForms(dataDir, countedRandom())
    mkdirSync(join(dataDir, 'uploads'))
    // Its name is the first one of the random source.
    symlinkSync('/dev/full', join(dataDir, 'uploads', countedRandom().token(20)))
    const body = form([['file', { file: 'x'.repeat(length) }]])
    await expect(receive(request(body))).rejects.toMatchObject({ code: 'service_unavailable' })
    expect(readdirSync(join(dataDir, 'uploads'))).toEqual([])
  })

  test('is cleared of files of an earlier process', () => {
    const dataDir = tempFolder()
    mkdirSync(join(dataDir, 'uploads'))
    writeFileSync(join(dataDir, 'uploads', 'left'), 'x')
    clearUploads(dataDir)
    clearUploads(dataDir)
    expect(existsSync(join(dataDir, 'uploads'))).toBe(false)
  })
})
