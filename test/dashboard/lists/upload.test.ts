import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createListsDashboard, EVIL, EVIL_SHOWN } from './room.ts'

const LIST = 'name,email\nAnn,ann@a.test\n'

describe('a list uploaded without JavaScript', () => {
  test('is named after its file or as given', async () => {
    const { send, jobs, left } = await createListsDashboard()
    for (const [name, fileName, shown] of [
      ['', 'März.csv', 'März.csv'],
      ['March', 'my.csv', 'March'],
    ] as const) {
      const sent = await send(LIST, { fields: { name }, fileName })
      const job = (await jobs()).at(-1)
      expect([sent.status, sent.headers.get('Location')]).toEqual([303, `/lists/${job?.id}`])
      expect(job).toMatchObject({ name: shown, type: 'file', total: 1 })
      expect(left()).toEqual([])
    }
  })

  test('can be pasted rows, in the sandbox if selected', async () => {
    const { sendForm, jobs, csrf } = await createListsDashboard()
    await sendForm([
      ['_csrf', await csrf()],
      ['name', ''],
      ['sandbox', 'on'],
      ['file', { file: '', name: '' }],
      ['rows', 'a@a.test\r\nb@a.test\r\n'],
    ])
    expect(await jobs()).toMatchObject([{ name: 'Pasted rows', sandbox: 1, total: 2 }])
  })

  test('has the selected options: without mail servers, and again in spite of earlier results', async () => {
    const { send, mx, finished, jobs } = await createListsDashboard({ works: true })
    const hasProbed: boolean[] = []
    for (const fields of [{}, { skip_smtp: 'on' }, {}, { again: 'on' }]) {
      const before = mx.lines().length
      await send(LIST, { fields })
      await finished((await jobs()).at(-1)?.id ?? '')
      hasProbed.push(mx.lines().length > before)
    }
    expect(hasProbed).toEqual([true, false, false, true])
  })

  test('sends an email about its end, to an address that the form can add to the account', async () => {
    const { send, preview, jobs, get, json } = await createListsDashboard()
    expect((await get('/lists/new')).text).toContain('This account has no email address.')
    expect((await preview(LIST, { fields: { notify: 'on' } })).status).toBe(200)
    const refused = await send(LIST, { fields: { notify: 'on', account_email: ' ' } })
    expect([refused.status, await jobs()]).toEqual([400, []])
    expect(await refused.text()).toContain('Enter one next to &quot;Notify by email&quot;')
    const fields = { notify: 'on', account_email: 'owner@shop.example' }
    expect((await send(LIST, { fields })).status).toBe(303)
    expect(await jobs()).toHaveLength(1)
    expect((await json('/v1/account')).data).toMatchObject({ email: 'owner@shop.example' })
    const { text } = await get('/lists/new')
    expect(text).toContain('owner@shop.example receives an email')
    expect(text).not.toContain('name="account_email"')
    // The field of a page that was loaded before changes no address.
    await send(LIST, { fields: { ...fields, account_email: 'other@shop.example' } })
    expect((await json('/v1/account')).data).toMatchObject({ email: 'owner@shop.example' })
  })

  test('has a reason at each option that the user cannot change', async () => {
    const { as, get, addKey, cookies, signIn } = await createListsDashboard()
    await as('verify:bulk')
    expect((await get('/lists/new')).text).toMatch(
      /name="notify" +disabled.*?no email address\. The key .*? lacks/s,
    )
    cookies.clear()
    await signIn(await addKey({ kind: 'test' }))
    expect((await get('/lists/new')).text).toMatch(
      /name="sandbox" checked disabled.*?Always on, because you signed in with a test key/s,
    )
  })

  test('is previewed, with pasted rows, name and options still in the form', async () => {
    const { sendForm, csrf, jobs } = await createListsDashboard()
    const sent = await sendForm(
      [
        ['_csrf', await csrf()],
        ['name', 'March'],
        ['skip_smtp', 'on'],
        ['file', { file: '', name: '' }],
        ['rows', 'who,email\r\nAnn,ann@a.test\r\n'],
      ],
      { path: '/lists/new?dry_run=true' },
    )
    const text = await sent.text()
    expect(sent.status).toBe(200)
    expect(text).toContain('<h1>New list</h1>')
    expect(text).toContain('<dt>Credits needed</dt>')
    expect(text).toMatch(/<textarea id="rows"[^>]*>who,email\r?\nAnn,ann@a.test/)
    expect(text).toContain('name="name" type="text" value="March"')
    expect(text).toMatch(/name="skip_smtp" checked/)
    expect(text).not.toMatch(/name="sandbox" checked/)
    expect(text).not.toContain('choose the file again')
    expect(await jobs()).toEqual([])
  })

  test('is previewed, but a file must be chosen again', async () => {
    const { sendForm, csrf } = await createListsDashboard()
    const sent = await sendForm(
      [
        ['_csrf', await csrf()],
        ['file', { file: LIST, name: 'list.csv' }],
      ],
      { path: '/lists/new?dry_run=true' },
    )
    const text = await sent.text()
    expect(text).toContain('To start it, choose the file again.')
    expect(text).toContain('<option value="2" selected>2: email</option>')
    expect(text).toContain(
      'rows="6" spellcheck="false" autocomplete="off" aria-describedby="rows-hint"></textarea>',
    )
  })

  test('is created once if the form is sent twice', async () => {
    const { send, get, jobs } = await createListsDashboard()
    const { text } = await get('/lists/new')
    const _once = /name="_once" value="([^"]+)"/.exec(text)?.[1] ?? ''
    const sent = [await send(LIST, { fields: { _once } }), await send(LIST, { fields: { _once } })]
    const [job, ...more] = await jobs()
    expect(more).toEqual([])
    for (const { headers } of sent) expect(headers.get('Location')).toBe(`/lists/${job?.id}`)
  })

  test('renders its name as text', async () => {
    const { send, get } = await createListsDashboard()
    for (const o of [{ fileName: 'evil.csv', fields: { name: EVIL } }, { fileName: EVIL }]) {
      const { text } = await get((await send(LIST, o)).headers.get('Location') ?? '')
      expect(text).toContain(`<h1>${EVIL_SHOWN}</h1>`)
      expect(text).not.toContain('<img')
    }
  })

  test('may be larger than other forms', async () => {
    const { send, jobs } = await createListsDashboard()
    expect((await send('someone@a.test\n'.repeat(20_000))).status).toBe(303)
    expect(await jobs()).toMatchObject([{ total: 20_000 }])
  })

  test('shows the error of the API on the form page', async () => {
    const { send, left } = await createListsDashboard()
    const sent = await send('who;where\nAnn;Paris\n', { fields: { name: 'March' } })
    const text = await sent.text()
    expect([sent.status, left()]).toEqual([400, []])
    expect(text).toMatch(/role="alert">.*?<p>[^<]*column/)
    expect(text).toContain('<textarea')
    expect(text).toContain('value="March"')
  })
})

describe('an upload is rejected and discarded', () => {
  test('without the token of this session', async () => {
    const { send, preview, start, left } = await createListsDashboard()
    const other = await createListsDashboard()
    for (const token of ['', 'wrong', `${await other.csrf()}x`]) {
      const headers = { 'X-CSRF-Token': token }
      const asked = [await preview(LIST, { headers }), await start(LIST, { headers })]
      const form = await send(LIST, { fields: { _csrf: token } })
      expect([...asked, form].map(({ status }) => status)).toEqual([403, 403, 403])
      for (const { text } of asked) expect(text).toContain('This form does not belong')
      expect(await form.text()).toContain('This form does not belong to your session')
      expect(left()).toEqual([])
    }
  })

  test('with the token after the file', async () => {
    const { sendForm, csrf, left } = await createListsDashboard()
    const sent = await sendForm([
      ['file', { file: LIST }],
      ['_csrf', await csrf()],
    ])
    expect([sent.status, left()]).toEqual([403, []])
  })

  test('from another site, even with the token', async () => {
    const { start, left } = await createListsDashboard()
    const sent = await start(LIST, { headers: { 'Sec-Fetch-Site': 'cross-site' } })
    expect([sent.status, left()]).toEqual([403, []])
  })

  test('without a session', async () => {
    const { preview, cookies, left } = await createListsDashboard()
    cookies.clear()
    const sent = await preview(LIST)
    expect([sent.status, sent.headers.get('HX-Redirect'), left()]).toEqual([401, '/sign-in', []])
  })

  test('from a key without the scope, and its page says so', async () => {
    const { start, as, get, left } = await createListsDashboard()
    await as('jobs:read')
    const sent = await start(LIST)
    expect([sent.status, left()]).toEqual([403, []])
    const { text } = await get('/lists/new')
    expect(text).toContain('lacks the scope &quot;verify:bulk&quot;')
    expect(text).not.toContain('<textarea')
    expect((await get('/lists')).text).not.toContain('/lists/new')
  })

  test('that is empty', async () => {
    const { preview, sendForm, csrf, left } = await createListsDashboard()
    expect((await preview('')).text).toContain('The list is empty. Choose a file or paste rows.')
    const sent = await sendForm([
      ['_csrf', await csrf()],
      ['file', { file: '', name: '' }],
      ['rows', ''],
    ])
    expect([sent.status, left()]).toEqual([400, []])
    const text = await sent.text()
    expect(text).toContain('The list is empty.')
    expect(text).toContain('<textarea')
  })

  test('that has both a file and rows', async () => {
    const { sendForm, csrf, left } = await createListsDashboard()
    const sent = await sendForm([
      ['_csrf', await csrf()],
      ['file', { file: LIST }],
      ['rows', 'a@a.test'],
    ])
    expect([sent.status, left()]).toEqual([400, []])
    expect(await sent.text()).toContain('Choose a file or paste rows, not both.')
  })

  test('that is too large, before it is read', async () => {
    const { preview, left } = await createListsDashboard()
    const headers = { 'Content-Length': String(200 * 1024 * 1024) }
    const { status, text } = await preview(LIST, { headers })
    expect([status, left()]).toEqual([413, []])
    expect(text).toMatch(/larger than 100 MiB.*Split it/)
  })

  test('if it cannot be stored on disk', async () => {
    const { preview, service } = await createListsDashboard()
    const folder = join(service.settings.dataDir, 'uploads')
    writeFileSync(folder, 'a file in its place')
    const { status, text } = await preview(LIST)
    expect(status).toBe(503)
    expect(text).toMatch(/disk of the service is full/)
    rmSync(folder)
    mkdirSync(folder)
    expect((await preview(LIST)).status).toBe(200)
  })

  test('while five others of the account are in progress', async () => {
    const { fetch, csrf, preview, left } = await createListsDashboard()
    const headers = {
      'Content-Type': 'multipart/form-data; boundary=b',
      'X-CSRF-Token': await csrf(),
    }
    const bodies = Array.from({ length: 5 }, () => new TransformStream<Uint8Array, Uint8Array>())
    const sent = bodies.map(({ readable: body }) =>
      fetch('/lists/new', { method: 'POST', headers, body, duplex: 'half' } as RequestInit),
    )
    const writers = bodies.map(({ writable }) => writable.getWriter())
    const head = '--b\r\nContent-Disposition: form-data; name="rows"\r\n\r\n'
    for (const writer of writers) await writer.write(Buffer.from(`${head}email\n`))
    await expect.poll(() => left().length).toBe(5)
    expect((await preview(LIST)).status).toBe(429)
    for (const writer of writers) {
      await writer.write(Buffer.from('ann@a.test\r\n--b--\r\n'))
      await writer.close()
    }
    expect((await Promise.all(sent)).map(({ status }) => status)).toEqual(Array(5).fill(303))
    expect(left()).toEqual([])
    expect((await preview(LIST)).status).toBe(200)
  })
})
