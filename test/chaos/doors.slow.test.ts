import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, expect, test } from 'vitest'
import { startEv } from '../support/ev-process.ts'
import { startReceiver } from '../support/http-receiver.ts'
import { FORM, form } from '../support/list-form.ts'
import {
  type MeasuredService,
  readMemory,
  startMeasuredService,
} from '../support/measured-service.ts'
import { textRow, workbookOf, workbookParts, zipOf } from '../support/workbook.ts'

/** Growth of the memory that the worst input of any door may cause, in MB. */
const PEAK_MB_MAX = 250
/** Longest time for which other requests may wait for one turn of the event loop. */
const HOLD_MS_MAX = 200

const MIB = 1024 * 1024
const JSON_GZIP = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }

const rows: string[] = []
afterAll(() => {
  const head = ['door', 'worst input', 'sent', 'peak', 'longest hold'].join(' | ')
  process.stderr.write(`\n${[head, ...rows].join('\n')}\n`)
})

/** Sends a request in the sandbox, and returns its status. */
async function send(
  { url, key }: MeasuredService,
  path: string,
  body?: Uint8Array,
  headers: Record<string, string> = {},
): Promise<number> {
  const init = {
    ...(body === undefined ? {} : { method: 'POST', body: Buffer.from(body) }),
    headers: { Authorization: `Bearer ${key}`, 'X-EV-Sandbox': 'true', ...headers },
  }
  const response = await fetch(`${url}${path}`, init)
  await response.arrayBuffer()
  return response.status
}

const upload = (service: MeasuredService, file: Uint8Array | string, count: number) =>
  atOnce(count, () =>
    send(
      service,
      '/v1/verify/file',
      form([
        ['file', { file }],
        ['column', '1'],
      ]),
      {
        'Content-Type': FORM,
      },
    ),
  )

const sendJson = (service: MeasuredService, path: string, text: string, count: number) =>
  atOnce(count, () => send(service, path, gzipSync(text), JSON_GZIP))

const atOnce = <T>(count: number, work: (n: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, n) => work(n)))

const repeat = (count: number, item: (n: number) => string) => {
  let text = ''
  for (let n = 0; n < count; n += 1) text += item(n)
  return text
}

/** Workbooks, each of which stays within the ratio of a compressed file. */
const padding = Buffer.from(repeat(300_000, n => ((n * 2_654_435_761) % 2 ** 32).toString(36)))
const book = async (parts: Parameters<typeof workbookOf>[0]) =>
  zipOf({ ...workbookParts(parts), 'padding.bin': padding })

/** Stores a list in the sandbox, and returns the path of its download. */
async function storeList({ url, key }: MeasuredService, file: string): Promise<string> {
  const headers = { Authorization: `Bearer ${key}`, 'X-EV-Sandbox': 'true', 'Content-Type': FORM }
  const body = form([
    ['file', { file }],
    ['column', '1'],
  ])
  const stored = await fetch(`${url}/v1/verify/file`, { method: 'POST', body, headers })
  const { job_id: id, error } = (await stored.json()) as { job_id?: string; error?: string }
  if (id === undefined) throw new Error(error)
  for (;;) {
    const answer = await fetch(`${url}/v1/jobs/${id}?wait=10`, { headers })
    const { status } = (await answer.json()) as { status: string }
    if (status === 'completed') return `/v1/jobs/${id}`
  }
}

/** Requests a path and reads nothing of the answer. */
async function openIdle({ url, key }: MeasuredService, path: string): Promise<Socket> {
  const { port } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1')
  socket.pause()
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ev.test\r\nAuthorization: Bearer ${key}\r\n\r\n`)
  return socket
}

async function holdIdle(service: MeasuredService, path: string, count: number): Promise<void> {
  const sockets = await atOnce(count, () => openIdle(service, path))
  await sleep(4_000)
  for (const socket of sockets) socket.destroy()
}

const WIDE = `email${','.repeat(900_000)}\n${repeat(2_000, n => `valid${n}@a.example\n`)}`
const WIDEST = `email${','.repeat(32_000)}\n${repeat(2_000, n => `valid${n}@a.example\n`)}`
const PADDED = `email${','.repeat(2_000)}\n${repeat(20_000, n => `valid${n}@a.example\n`)}`
const LONG = `email,note\n${repeat(60, n => `valid${n}@a.example,${'x'.repeat(MIB - 100)}\n`)}`
const SHORT_THEN_LONG = `email,note\n${repeat(600, n => `valid${n}@a.example,\n`)}${LONG.slice(11)}`
const names = (count: number) => repeat(count, n => `"${n}":0,`)
const ESCAPES = `{"emails":[${repeat(48_000, n => `"${'\\u0061'.repeat(54)}${n}",`)}""]}`
const NAMES = `{"items":[${repeat(130_000, n => `{"${'k'.repeat(90)}${n}":0},`)}{}]}`

type Door = {
  readonly door: string
  readonly input: string
  readonly sent: string
  /** Prepares the service, and returns the work that is measured. */
  readonly prepare: (service: MeasuredService) => Promise<() => Promise<unknown>>
}

const door =
  (name: string) =>
  (input: string, sent: string, work: (service: MeasuredService) => Promise<unknown>): Door => ({
    door: name,
    input,
    sent,
    prepare: async service => () => work(service),
  })

const uploads = door('upload')
const gzip = door('gzip')
const json = door('JSON')
const workbook = door('workbook')
const feedback = door('feedback')
const forms = door('form')

const DOORS: Door[] = [
  uploads('a header of 900,000 columns', '0.9 MB', s => upload(s, WIDE, 1)),
  uploads('32,000 columns, 2,000 short rows', '4 × 0.1 MB', s => upload(s, WIDEST, 4)),
  uploads('rows of a megabyte, and their results', '60 MB', s => storeList(s, LONG)),
  uploads('one row of 90 MB', '90 MB', s => upload(s, 'a'.repeat(90 * MIB), 1)),
  uploads('quotes that are not closed', '10 MB', s =>
    upload(
      s,
      repeat(1_000_000, () => '"a@a.b,"x\n'),
      1,
    ),
  ),
  gzip('a file of 500 MB', '3 MB', s =>
    upload(s, gzipSync(Buffer.concat([padding, Buffer.alloc(500 * MIB, 'a@a.test,\n')])), 2),
  ),
  gzip('JSON with 100,000 fields', '4 × 0.3 MB', s =>
    sendJson(s, '/v1/verify/batch', `{${names(1_000_000)}"a":0}`, 4),
  ),
  gzip('JSON with 5 million objects', '4 × 15 KB', s =>
    sendJson(s, '/v1/verify/batch', `{"items":[${'{},'.repeat(5_000_000)}{}]}`, 4),
  ),
  gzip('JSON with nested arrays', '4 × 30 KB', s =>
    sendJson(s, '/v1/verify/batch', `{"emails":[${'[[[[[[[[[[]]]]]]]]]],'.repeat(700_000)}0]}`, 4),
  ),
  gzip('JSON of 16 MB of escapes', '4 × 165 KB', s => sendJson(s, '/v1/verify/batch', ESCAPES, 4)),
  gzip('JSON with 130,000 names of fields', '4 × 0.4 MB', s =>
    sendJson(s, '/v1/verify/batch', NAMES, 4),
  ),
  json('16 MB of escapes', '4 × 16 MB', s =>
    atOnce(4, () =>
      send(s, '/v1/verify/batch', Buffer.from(ESCAPES), { 'Content-Type': 'application/json' }),
    ),
  ),
  json('not UTF-8 at the end', '4 × 16 MB', s =>
    atOnce(4, () =>
      send(s, '/v1/verify/batch', Buffer.from(`${ESCAPES}\u00ff`, 'latin1'), {
        'Content-Type': 'application/json',
      }),
    ),
  ),
  workbook('cells in the last column', '2 × 3 KB', async s =>
    upload(
      s,
      await workbookOf({
        sheet: repeat(20_000, () => '<row><c r="XFD1" t="str"><v>x</v></c></row>'),
      }),
      2,
    ),
  ),
  workbook('a cell of 300 MB', '2 × 2 MB', async s =>
    upload(
      s,
      await book({
        sheet: `<row><c t="inlineStr"><is>${`<t>${'a'.repeat(MIB)}</t>`.repeat(300)}</is></c></row>`,
      }),
      2,
    ),
  ),
  workbook('300 MB of shared strings', '2 × 2 MB', async s =>
    upload(s, await book({ sheet: textRow('email'), strings: '<si/>'.repeat(60_000_000) }), 2),
  ),
  workbook('rows of one long text', '2 × 2 MB', async s =>
    upload(
      s,
      await book({
        sheet: repeat(20_000, () => `<row>${'<c t="s"><v>0</v></c>'.repeat(30)}</row>`),
        strings: `<si><t>${'x'.repeat(32_767)}</t></si>`,
      }),
      2,
    ),
  ),
  workbook('600,000 cell formats of one long code', '2 × 2 MB', async s =>
    upload(
      s,
      await book({
        sheet: textRow('email'),
        styles: `<numFmt numFmtId="200" formatCode="${'[a'.repeat(400_000)}"/><cellXfs>${'<xf numFmtId="200"/>'.repeat(600_000)}</cellXfs>`,
      }),
      2,
    ),
  ),
  feedback('1,000 items of 2 KB', '2 MB', s =>
    send(
      s,
      '/v1/feedback',
      Buffer.from(
        JSON.stringify({
          items: Array.from({ length: 1_000 }, (_, n) => ({
            email: `a${n}@a.example`,
            kind: 'bounced',
            text: 'x'.repeat(1_900),
          })),
        }),
      ),
      { 'Content-Type': 'application/json' },
    ),
  ),
  forms('a million fields', '20 MB', s =>
    send(
      s,
      '/v1/verify/file',
      Buffer.from(
        repeat(
          400_000,
          n => `------ev\r\nContent-Disposition: form-data; name="f${n}"\r\n\r\n\r\n`,
        ),
      ),
      { 'Content-Type': FORM },
    ),
  ),
  forms('an endless header of a part', '20 MB', s =>
    send(
      s,
      '/v1/verify/file',
      Buffer.from(
        `------ev\r\nContent-Disposition: form-data; name="${'x'.repeat(20 * MIB)}"\r\n\r\n`,
      ),
      { 'Content-Type': FORM },
    ),
  ),
  {
    door: 'download',
    input: '32,000 columns, 2,000 rows: CSV, JSON, XLSX',
    sent: '0.1 MB',
    async prepare(service) {
      const path = await storeList(service, WIDEST)
      return () =>
        atOnce(3, n => send(service, `${path}/download?format=${['csv', 'ndjson', 'xlsx'][n]}`))
    },
  },
  {
    door: 'download',
    input: '20 readers of 45 MB that stop reading',
    sent: '0.4 MB',
    async prepare(service) {
      const path = await storeList(service, PADDED)
      return () => holdIdle(service, `${path}/download`, 20)
    },
  },
  {
    door: 'download',
    input: '20 stopped readers of rows of a megabyte',
    sent: '60 MB',
    async prepare(service) {
      const path = await storeList(service, SHORT_THEN_LONG)
      return () => holdIdle(service, `${path}/download?format=ndjson`, 20)
    },
  },
  {
    door: 'stream',
    input: '200 followers of a list that stop reading',
    sent: '0.4 MB',
    async prepare(service) {
      const path = await storeList(service, PADDED)
      return () => holdIdle(service, `${path}/events`, 200)
    },
  },
]

test.each(DOORS)('$door: $input', { timeout: 300_000 }, async ({ door, input, sent, prepare }) => {
  const service = await startMeasuredService()
  const work = await prepare(service)
  const { peakMb, holdMs } = await service.measure(work)
  rows.push([door, input, sent, `${peakMb} MB`, `${holdMs} ms`].join(' | '))
  expect((await fetch(`${service.url}/livez`)).status).toBe(200)
  await service.end()
  expect({ peakMb, holdMs }).toEqual({
    peakMb: expect.toSatisfy((mb: number) => mb <= PEAK_MB_MAX),
    holdMs: expect.toSatisfy((ms: number) => ms <= HOLD_MS_MAX),
  })
})

test('URL: a gzip file of 300 MB', { timeout: 300_000 }, async () => {
  const receiver = await startReceiver({
    name: '127.0.0.1',
    answer: { body: gzipSync(Buffer.concat([padding, Buffer.alloc(300 * MIB, 'a@a.test,\n')])) },
  })
  try {
    const flags = ['--list-allow-ranges', '127.0.0.0/8', '--webhook-ca-file', 'ca.pem']
    const service = await startMeasuredService(flags, { files: { 'ca.pem': receiver.ca } })
    const body = Buffer.from(JSON.stringify({ url: receiver.url, column: 1 }))
    const headers = { 'Content-Type': 'application/json' }
    const statuses: number[] = []
    const cost = await service.measure(async () => {
      statuses.push(...(await atOnce(2, () => send(service, '/v1/verify/url', body, headers))))
    })
    rows.push(
      ['URL', 'a gzip file of 300 MB', '2 × 3 MB', `${cost.peakMb} MB`, `${cost.holdMs} ms`].join(
        ' | ',
      ),
    )
    expect(statuses).toEqual([400, 400])
    expect(receiver.received).toHaveLength(2)
    expect(cost.peakMb).toBeLessThanOrEqual(PEAK_MB_MAX)
    expect(cost.holdMs).toBeLessThanOrEqual(HOLD_MS_MAX)
    await service.end()
  } finally {
    await receiver.close()
  }
})

test('feedback import: 32,000 columns, and a message of 20 MB', { timeout: 300_000 }, async () => {
  const service = await startMeasuredService()
  await service.end()
  const { home } = service
  const csv = `email,event,${repeat(32_000, n => `c${n},`)}x\n${repeat(20_000, n => `a${n}@a.example,bounced\n`)}`
  const message = `Return-Path: <>\nFrom: a@a.example\nContent-Type: multipart/mixed; boundary=b\n\n${'--b\n\n'.repeat(4_000_000)}`
  for (const [name, text] of Object.entries({ 'a.csv': csv, 'a.eml': message })) {
    writeFileSync(join(home, name), text)
    const { child, ended } = startEv(['feedback', 'import', name, '--data-dir', 'data'], { home })
    let peakMb = 0
    const timer = setInterval(() => {
      try {
        peakMb = Math.max(peakMb, readMemory(child.pid ?? 0, 'VmHWM'))
      } catch {} // It has ended.
    }, 20)
    const { code, stderr } = await ended
    clearInterval(timer)
    rows.push(
      [
        'feedback import',
        name,
        `${Math.round(text.length / 1e6)} MB`,
        `${peakMb} MB in all`,
        '',
      ].join(' | '),
    )
    expect([code, stderr]).toEqual([0, ''])
    expect(peakMb).toBeLessThanOrEqual(2 * PEAK_MB_MAX)
  }
})
