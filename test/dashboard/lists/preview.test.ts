import { describe, expect, test } from 'vitest'
import { textRow, workbookOf } from '../../support/workbook.ts'
import { createListsDashboard, EVIL, EVIL_SHOWN } from './room.ts'

const LIST = 'name,email\nAnn,ann@a.test\nBob,bob@a.test\nAnn,ann@A.TEST\n,nonsense\n'

/** Returns the value of a figure by its label. */
const figureOf = (text: string, name: string) =>
  new RegExp(`<dt>${name}</dt><dd>([^<]*)</dd>`).exec(text)?.[1]

/** Returns the layout choices of a preview. */
const chosen = (text: string) =>
  Object.fromEntries(
    ['column', 'header'].map(name => [
      name,
      new RegExp(`name="${name}">[^]*?<option value="([^"]*)" selected>`).exec(text)?.[1],
    ]),
  )

/** Returns the layout choices of a preview and whether all addresses of a row are verified. */
const allChosen = (text: string) => ({
  ...chosen(text),
  all_addresses:
    /name="all_addresses" value="(\w+)"/.exec(text)?.[1] ??
    /name="all_addresses">.*?value="(\w+)" selected>/s.exec(text)?.[1] ??
    'none',
})

const START = '>Start</button>'

const nonceIn = (text: string) => /name="_once" value="([^"]+)"/.exec(text)?.[1] ?? ''

describe('the preview of a list', () => {
  test('shows it as parsed, and stores nothing', async () => {
    const services = await createListsDashboard({ plan: 'free' })
    const { status, text } = await services.preview(LIST)
    expect(status).toBe(200)
    expect(
      [
        'Rows',
        'Addresses',
        'Malformed',
        'Duplicates',
        'Credits needed',
        'Credits left today',
        'Estimated time',
      ].map(name => figureOf(text, name)),
    ).toEqual(['4', '3', '1', '1', '2', '100', '10 seconds'])
    expect(text).toMatch(/<option value="2" selected>2: email<\/option>/)
    expect(text).toMatch(/<th scope="col" class="is-chosen">email/)
    expect(text).toContain('<td class="is-chosen">bob@a.test</td>')
    expect(text).toContain('66 B, 2 columns, separated by commas.')
    expect(chosen(text)).toEqual({ column: '2', header: 'true' })
    expect(text).toContain(START)
    expect(text).not.toContain('<html')
    expect(await services.jobs()).toEqual([])
    expect(services.left()).toEqual([])
  })

  test('tells which other columns hold addresses, and verifies all of them if chosen', async () => {
    const { preview, start, jobs } = await createListsDashboard()
    const book = 'name,email,Manager\nAnn,ann@a.test,lee@a.test\nBob,bob@a.test,\n'
    const { text } = await preview(book)
    expect(text).toContain('Column 3 (Manager) also contains addresses, which are not verified.')
    expect([figureOf(text, 'Rows'), allChosen(text).all_addresses]).toEqual(['2', 'false'])
    const fields = { ...allChosen(text), all_addresses: 'true' }
    const all = (await preview(book, { fields })).text
    expect(all).not.toContain('not verified')
    expect([figureOf(all, 'Rows'), allChosen(all)]).toEqual(['3', fields])
    await start(book, { fields })
    expect(await jobs()).toMatchObject([{ total: 3 }])
  })

  test('offers to keep the results of another service, which cost no credits', async () => {
    const list = 'email,ZB Status\nann@a.test,valid\nbob@a.test,invalid\ncy@a.test,unknown\n'
    const { preview, start, jobs, json } = await createListsDashboard({ plan: 'free' })
    const { text } = await preview(list)
    expect(text).toContain('Results of ZeroBounce')
    expect([figureOf(text, 'Kept results'), figureOf(text, 'Credits needed')]).toEqual([
      undefined,
      '3',
    ])
    const fields = { keep_external: 'true', external_date: '2026-05-20' }
    const kept = await preview(list, { fields })
    expect(kept.text).toContain('type="date" value="2026-05-20"')
    expect(figureOf(kept.text, 'Kept results')).toBe('3')
    expect(figureOf(kept.text, 'Credits needed')).toBe('0')
    await start(list, { fields })
    const [job] = await jobs()
    expect(await json(`/v1/jobs/${job?.id}`)).toMatchObject({ status: 'completed' })
  })

  test('of pasted recipients starts with all of them', async () => {
    const { preview, start, jobs } = await createListsDashboard()
    const pasted = 'Ann <ann@a.test>; Bob <bob@a.test>'
    const { text } = await preview(pasted)
    const fields = allChosen(text)
    expect(fields).toEqual({ column: '1', header: 'false', all_addresses: 'true' })
    await start(pasted, { fields })
    expect(await jobs()).toMatchObject([{ total: 2 }])
  })

  test('parses it again with another column or without a header', async () => {
    const { preview } = await createListsDashboard()
    const { text } = await preview(LIST, { fields: { column: '1', header: 'false' } })
    expect(text).toMatch(/<option value="1" selected>Column 1<\/option>/)
    expect([figureOf(text, 'Rows'), figureOf(text, 'Addresses')]).toEqual(['5', '0'])
    expect(chosen(text)).toEqual({ column: '1', header: 'false' })
  })

  test('of a workbook offers its sheets, and detects the columns of another sheet again', async () => {
    const { preview, start, jobs, left } = await createListsDashboard()
    const sheets = {
      Customers: textRow('name', 'email') + textRow('Ann', 'ann@a.test'),
      Leads: textRow('mail', 'city') + textRow('bob@b.test', 'Rome'),
    }
    const file = await workbookOf({ sheets })
    const first = (await preview(file)).text
    expect(first).toMatch(/<option value="Customers" selected>Customers<\/option>/)
    expect(first).toContain('2 columns, an Excel workbook.')
    expect(chosen(first)).toEqual({ column: '2', header: 'true' })
    const fields = { sheet: 'Leads', shown_sheet: 'Customers', column: '2', header: 'true' }
    const other = (await preview(file, { fields })).text
    expect(chosen(other)).toEqual({ column: '1', header: 'true' })
    expect(other).toContain('<input type="hidden" name="shown_sheet" value="Leads" />')
    const own = { ...fields, shown_sheet: 'Leads' }
    expect(chosen((await preview(file, { fields: own })).text)).toEqual({
      column: '2',
      header: 'true',
    })
    expect((await start(file, { fields: { ...own, column: '1' } })).status).toBe(204)
    expect([await jobs(), left()]).toEqual([[expect.objectContaining({ total: 1 })], []])
  })

  test('without a detected column allows a start only after a choice', async () => {
    const { preview } = await createListsDashboard()
    const list = 'who;where\nAnn;Paris\nBob;Rome\n'
    const { text, status } = await preview(list)
    expect(status).toBe(200)
    expect(text).toContain('The column with the addresses was not detected.')
    expect(text).toContain('<option value="" selected>Choose the column …</option>')
    expect(text).toContain('<td >Paris</td>')
    expect(text).not.toContain(START)
    const { text: again } = await preview(list, { fields: { column: '2' } })
    expect(chosen(again)).toEqual({ column: '2', header: 'true' })
    expect(again).toContain(START)
  })

  test('reports insufficient credits and offers no start', async () => {
    const services = await createListsDashboard({ plan: 'free' })
    const many = Array.from({ length: 101 }, (_, n) => `user${n}@a.test\n`).join('')
    const { text } = await services.preview(many)
    expect(text).toContain('This list needs 101 credits, but only 100 are left today, 1 too few')
    expect(text).not.toContain(START)
    const forced = await services.start(many, { fields: { column: '1', header: 'false' } })
    expect([forced.status, forced.headers.get('HX-Retarget')]).toEqual([429, '#sending'])
    expect(forced.text).toContain('role="alert"')
    expect(await services.jobs()).toEqual([])
  })

  test('reports a file that is not a list beside the form', async () => {
    const { preview, left } = await createListsDashboard()
    const { text, status, headers } = await preview('PK\u0003\u0004 and more')
    expect([status, headers.get('HX-Retarget')]).toEqual([400, '#sending'])
    expect(text).toContain('The ZIP archive or workbook is damaged')
    expect(text).not.toContain(START)
    expect(left()).toEqual([])
  })

  test('renders markup in column names and cells as text', async () => {
    const { preview } = await createListsDashboard()
    const { text } = await preview(`${EVIL},email\n${EVIL},"${EVIL}"@a.test\nAnn,ann@a.test\n`)
    expect(text.split(EVIL_SHOWN).length).toBeGreaterThan(3)
    expect(text).not.toContain('<img')
  })

  test('has few columns, the address column among them', async () => {
    const { preview } = await createListsDashboard()
    const names = Array.from({ length: 60 }, (_, n) => (n === 49 ? 'email' : `c${n + 1}`))
    const cells = names.map(name => (name === 'email' ? 'ann@a.test' : name))
    const { text } = await preview(`${names.join(',')}\n${cells.join(',')}\n`)
    expect(text.match(/<th scope="col"/g)).toHaveLength(20)
    expect(text).toContain('<td class="is-chosen">ann@a.test</td>')
    expect(text).toContain('40 more columns are not shown')
  })

  test('needs no credits in the sandbox', async () => {
    const { preview } = await createListsDashboard()
    const { text } = await preview(LIST, { fields: { sandbox: 'on' } })
    expect(figureOf(text, 'Credits needed')).toBe('None (sandbox)')
  })
})

describe('starting a list', () => {
  const fields = { column: '2', header: 'true' }

  test('creates a job and redirects to it', async () => {
    const services = await createListsDashboard({ plan: 'free' })
    const { status, headers } = await services.start(LIST, { fields: { ...fields, name: 'March' } })
    const [job] = await services.jobs()
    expect([status, headers.get('HX-Redirect')]).toEqual([204, `/lists/${job?.id}`])
    expect(job).toMatchObject({
      name: 'March',
      type: 'file',
      state: 'queued',
      total: 4,
      sandbox: 0,
    })
    expect(services.worker).toMatchObject({ taken: [job?.id] })
    expect(services.left()).toEqual([])
  })

  test('in the sandbox creates a simulated one', async () => {
    const services = await createListsDashboard()
    await services.start(LIST, { fields: { ...fields, sandbox: 'on' } })
    expect(await services.jobs()).toMatchObject([{ sandbox: 1 }])
  })

  test('twice from one preview creates one job', async () => {
    const services = await createListsDashboard()
    const once = { ...fields, _once: nonceIn((await services.preview(LIST)).text) }
    const both = await Promise.all([
      services.start(LIST, { fields: once }),
      services.start(LIST, { fields: once }),
    ])
    const later = await services.start(LIST, { fields: once })
    const [job, ...more] = await services.jobs()
    expect([later.headers.get('HX-Redirect'), more]).toEqual([`/lists/${job?.id}`, []])
    const places = both.map(({ headers }) => headers.get('HX-Redirect'))
    expect(places).toContain(`/lists/${job?.id}`)
    // The other gets the same response, or 409 while the first is in progress.
    expect(both.every(({ status }) => [204, 409].includes(status))).toBe(true)
    expect(later.status).toBe(204)
  })

  test('from another preview creates another job', async () => {
    const services = await createListsDashboard()
    for (const _ of ['one', 'another']) {
      const _once = nonceIn((await services.preview(LIST)).text)
      expect((await services.start(LIST, { fields: { ...fields, _once } })).status).toBe(204)
    }
    expect(await services.jobs()).toHaveLength(2)
  })

  test('after a change of the form is rejected once, with a new nonce', async () => {
    const services = await createListsDashboard()
    const _once = nonceIn((await services.preview(LIST)).text)
    await services.start(LIST, { fields: { ...fields, _once } })
    const changed = { ...fields, name: 'Other' }
    const refused = await services.start(LIST, { fields: { ...changed, _once } })
    expect(refused.status).toBe(422)
    expect(refused.text).toContain('hx-swap-oob="innerHTML:#once"')
    const again = { ...changed, _once: nonceIn(refused.text) }
    expect((await services.start(LIST, { fields: again })).status).toBe(204)
  })

  test('continues if the browser disconnects, as after a double click', async () => {
    const services = await createListsDashboard()
    const leaving = new AbortController()
    const sent = services.send(LIST, { fields, signal: leaving.signal })
    leaving.abort()
    const { status, headers } = await sent
    const [job] = await services.jobs()
    expect([status, headers.get('Location')]).toEqual([303, `/lists/${job?.id}`])
  })
})
