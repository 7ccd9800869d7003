import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { EVIL, EVIL_SHOWN, listsHouse } from './room.ts'

const LIST = 'name,email\nAnn,ann@a.test\n'

describe('a list is taken', () => {
  test('as bare bytes by a script, which is told where to look at it', async () => {
    const { send, get, left } = await listsHouse()
    const sent = await send(LIST, { fileName: 'März.csv' })
    expect(sent.status).toBe(201)
    const { path } = (await sent.json()) as { path: string }
    expect(path).toMatch(/^\/lists\/drafts\/drf_[a-z0-9]{20}$/)
    expect((await get(path)).text).toContain('<h1>März.csv</h1>')
    expect(left()).toHaveLength(2)
  })

  test('as a form without scripts, whose file has a name of its own or is given one', async () => {
    const { sendForm, get, csrf } = await listsHouse()
    for (const [name, shown] of [
      ['', 'my.csv'],
      ['March', 'March'],
    ] as const) {
      const sent = await sendForm([
        ['_csrf', await csrf()],
        ['name', name],
        ['file', { file: LIST, name: 'my.csv' }],
        ['rows', ''],
      ])
      expect(sent.status).toBe(303)
      const { text } = await get(sent.headers.get('Location') ?? '')
      expect(text).toContain(`<h1>${shown}</h1>`)
    }
  })

  test('as pasted rows, in the sandbox where that is ticked', async () => {
    const { sendForm, get, csrf } = await listsHouse()
    const sent = await sendForm([
      ['_csrf', await csrf()],
      ['name', ''],
      ['sandbox', 'on'],
      ['file', { file: '', name: '' }],
      ['rows', 'a@a.test\r\nb@a.test\r\n'],
    ])
    const { text } = await get(sent.headers.get('Location') ?? '')
    expect(text).toContain('<h1>Pasted rows</h1>')
    expect(text).toContain('none, in the sandbox')
    expect(text).toContain('<dt>Rows</dt><dd>2</dd>')
  })

  test('its name is text, whatever stands in it', async () => {
    const { draft, get } = await listsHouse()
    for (const o of [{ fileName: EVIL }, { name: EVIL }]) {
      const { text } = await get(await draft(LIST, o))
      expect(text).toContain(`<h1>${EVIL_SHOWN}</h1>`)
      expect(text).not.toContain('<img')
    }
  })

  test('longer than other forms may be', async () => {
    const { send, sendForm, csrf } = await listsHouse()
    const long = 'someone@a.test\n'.repeat(20_000)
    expect((await send(long)).status).toBe(201)
    const sent = await sendForm([
      ['_csrf', await csrf()],
      ['file', { file: long }],
    ])
    expect(sent.status).toBe(303)
  })
})

describe('a list is refused, and nothing of it is kept', () => {
  test('without the token of this session', async () => {
    const { send, sendForm, left } = await listsHouse()
    const other = await listsHouse()
    const file = ['file', { file: LIST }] as const
    for (const token of ['', 'wrong', `${await other.csrf()}x`]) {
      const bare = await send(LIST, { headers: { 'X-CSRF-Token': token } })
      const form = await sendForm([['_csrf', token], file])
      expect([bare.status, form.status]).toEqual([403, 403])
      expect(await bare.json()).toEqual({
        error: expect.stringMatching(/^This form does not belong/),
      })
      expect(await form.text()).toContain('This form does not belong to your session')
      expect(left()).toEqual([])
    }
  })

  test('with the token behind the file, which would have been taken by then', async () => {
    const { sendForm, csrf, left } = await listsHouse()
    const sent = await sendForm([
      ['file', { file: LIST }],
      ['_csrf', await csrf()],
    ])
    expect([sent.status, left()]).toEqual([403, []])
  })

  test('from another site, even with the token', async () => {
    const { send, left } = await listsHouse()
    const sent = await send(LIST, { headers: { 'Sec-Fetch-Site': 'cross-site' } })
    expect([sent.status, left()]).toEqual([403, []])
  })

  test('from who is not signed in', async () => {
    const { send, cookies, left } = await listsHouse()
    cookies.clear()
    const sent = await send(LIST, { headers: { 'HX-Request': 'true' } })
    expect([sent.status, sent.headers.get('HX-Redirect'), left()]).toEqual([401, '/sign-in', []])
  })

  test('from a key that may not verify lists, whose page says so', async () => {
    const { send, as, get, left } = await listsHouse()
    await as('jobs:read')
    const sent = await send(LIST)
    expect([sent.status, left()]).toEqual([403, []])
    const { text } = await get('/lists/new')
    expect(text).toContain('lacks the scope verify:bulk')
    expect(text).not.toContain('<textarea')
    expect((await get('/lists')).text).not.toContain('/lists/new')
  })

  test('that is empty, or has nothing in either place', async () => {
    const { send, sendForm, csrf, left } = await listsHouse()
    expect(await (await send('')).json()).toEqual({
      error: 'There is nothing in this list. Choose a file, or paste rows.',
    })
    const sent = await sendForm([
      ['_csrf', await csrf()],
      ['file', { file: '', name: '' }],
      ['rows', ''],
    ])
    expect([sent.status, left()]).toEqual([400, []])
    const text = await sent.text()
    expect(text).toContain('There is nothing in this list.')
    expect(text).toContain('<textarea')
  })

  test('that is both a file and pasted rows', async () => {
    const { sendForm, csrf, left } = await listsHouse()
    const sent = await sendForm([
      ['_csrf', await csrf()],
      ['file', { file: LIST }],
      ['rows', 'a@a.test'],
    ])
    expect([sent.status, left()]).toEqual([400, []])
    expect(await sent.text()).toContain('it holds more than one file')
  })

  test('that is larger than a list may be, before it is read', async () => {
    const { send, left } = await listsHouse()
    const headers = { 'Content-Length': String(200 * 1024 * 1024) }
    const sent = await send(LIST, { headers })
    expect([sent.status, left()]).toEqual([413, []])
    expect(await sent.json()).toEqual({
      error: expect.stringMatching(/more than 100 MiB.*Divide it/),
    })
  })

  test('where the disk does not take it', async () => {
    const { send, service } = await listsHouse()
    const folder = join(service.settings.dataDir, 'drafts')
    writeFileSync(folder, 'a file in its place')
    const sent = await send(LIST)
    expect(sent.status).toBe(503)
    expect(await sent.json()).toEqual({
      error: expect.stringMatching(/disk of the service is full/),
    })
    rmSync(folder)
    mkdirSync(folder)
    expect((await send(LIST)).status).toBe(201)
  })

  test('with a name that cannot be read', async () => {
    const { send, left } = await listsHouse()
    const sent = await send(LIST, { headers: { 'X-File-Name': '%E4' } })
    expect([sent.status, left()]).toEqual([400, []])
    expect(await sent.json()).toEqual({ error: expect.stringMatching(/X-File-Name/) })
  })
})
