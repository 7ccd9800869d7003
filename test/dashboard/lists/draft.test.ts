import { describe, expect, test } from 'vitest'
import { HOUR } from '../../../src/base/clock.ts'
import { EVIL, EVIL_SHOWN, listsHouse } from './room.ts'

const LIST = 'name,email\nAnn,ann@a.test\nBob,bob@a.test\nAnn,ann@A.TEST\n,nonsense\n'

/** What a definition list says of something. */
const told = (text: string, name: string) =>
  new RegExp(`<dt>${name}</dt><dd>([^<]*)</dd>`).exec(text)?.[1]

/** The hidden fields of the form that starts a list. */
const startFields = (text: string) =>
  Object.fromEntries(
    [
      ...((text.split('/start">')[1] ?? '')
        .split('</form>')[0]
        ?.matchAll(/name="(\w+)" value="([^"]*)"/g) ?? []),
    ]
      .map(([, name, value]) => [name, value])
      .filter(([name]) => name !== '_csrf'),
  )

const jobs = ({ database }: Awaited<ReturnType<typeof listsHouse>>) =>
  database.db.selectFrom('job').selectAll().execute()

describe('a list that was sent', () => {
  test('is shown as it was read, and nothing has become of it', async () => {
    const house = await listsHouse({ plan: 'free' })
    const { text } = await house.get(await house.draft(LIST))
    expect(
      [
        'Rows',
        'Addresses',
        'Malformed',
        'Duplicates',
        'Credits needed',
        'Credits left today',
        'Takes about',
      ].map(name => told(text, name)),
    ).toEqual(['4', '3', '1', '1', '2', '100', '10 seconds'])
    expect(text).toMatch(/<option value="2" selected>2: email<\/option>/)
    expect(text).toMatch(/<th scope="col" class="is-chosen">email/)
    expect(text).toContain('<td class="is-chosen">bob@a.test</td>')
    expect(text).toContain('2 columns, divided by commas.')
    expect(startFields(text)).toEqual({ column: '2', header: 'true' })
    expect(await jobs(house)).toEqual([])
  })

  test('is read anew with another column, and with a first row that is like the others', async () => {
    const { get, draft } = await listsHouse()
    const { text } = await get(`${await draft(LIST)}?column=1&header=false`)
    expect(text).toMatch(/<option value="1" selected>Column 1<\/option>/)
    expect([told(text, 'Rows'), told(text, 'Addresses')]).toEqual(['5', '0'])
    expect(startFields(text)).toEqual({ column: '1', header: 'false' })
  })

  test('whose column is not found can only be started when that was chosen', async () => {
    const { get, draft } = await listsHouse()
    const path = await draft('who;where\nAnn;Paris\nBob;Rome\n')
    const { text, status } = await get(path)
    expect(status).toBe(200)
    expect(text).toContain('It could not be told which column holds the addresses.')
    expect(text).toContain('<option value="" selected>Choose the column …</option>')
    expect(text).toContain('<td >Paris</td>')
    expect(text).not.toContain('/start')
    expect(startFields((await get(`${path}?column=2`)).text)).toEqual({
      column: '2',
      header: 'true',
    })
  })

  test('that needs more credits than are left cannot be started, and why is said', async () => {
    const house = await listsHouse({ plan: 'free' })
    const many = Array.from({ length: 101 }, (_, n) => `user${n}@a.test\n`).join('')
    const path = await house.draft(many)
    const { text } = await house.get(path)
    expect(text).toContain('This list needs 101 credits, and 100 are left today: 1 too few')
    expect(text).not.toContain('/start')
    const forced = await house.post(`${path}/start`, { column: '1', header: 'false' })
    expect(forced.status).toBe(429)
    expect(forced.text).toContain('role="alert"')
    expect(await jobs(house)).toEqual([])
  })

  test('that is no list is told as that, with a way on', async () => {
    const { get, draft } = await listsHouse()
    const { text, status } = await get(await draft('PK\u0003\u0004 and more'))
    expect(status).toBe(400)
    expect(text).toContain('Excel workbook')
    expect(text).toContain('href="/lists/new"')
    expect(text).not.toContain('/start')
  })

  test('shows names of columns and cells as text, whatever stands in them', async () => {
    const { get, draft } = await listsHouse()
    const { text } = await get(
      await draft(`${EVIL},email\n${EVIL},"${EVIL}"@a.test\nAnn,ann@a.test\n`),
    )
    expect(text.split(EVIL_SHOWN).length).toBeGreaterThan(3)
    expect(text).not.toContain('<img')
  })

  test('has few columns in its preview, and the one of the addresses among them', async () => {
    const { get, draft } = await listsHouse()
    const names = Array.from({ length: 60 }, (_, n) => (n === 49 ? 'email' : `c${n + 1}`))
    const cells = names.map(name => (name === 'email' ? 'ann@a.test' : name))
    const { text } = await get(await draft(`${names.join(',')}\n${cells.join(',')}\n`))
    expect(text.match(/<th scope="col"/g)).toHaveLength(20)
    expect(text).toContain('<td class="is-chosen">ann@a.test</td>')
    expect(text).toContain('40 more columns are not shown')
  })
})

describe('starting a list', () => {
  const start = { column: '2', header: 'true' }

  test('makes a job of the same file, and the draft goes', async () => {
    const house = await listsHouse({ plan: 'free' })
    const path = await house.draft(LIST, { name: 'March' })
    const { status, headers } = await house.post(`${path}/start`, start)
    const [job] = await jobs(house)
    expect([status, headers.get('Location')]).toEqual([303, `/lists/${job?.id}`])
    expect(job).toMatchObject({
      name: 'March',
      type: 'file',
      state: 'queued',
      total: 4,
      sandbox: 0,
    })
    expect(house.worker).toMatchObject({ taken: [job?.id] })
    expect(house.left()).toEqual([expect.stringMatching(/\.json$/)])
  })

  test('in the sandbox makes a simulated one', async () => {
    const house = await listsHouse()
    await house.post(`${await house.draft(LIST, { sandbox: true })}/start`, start)
    expect(await jobs(house)).toMatchObject([{ sandbox: 1 }])
  })

  test('twice at the same time, or later once more, makes one job and shows it', async () => {
    const house = await listsHouse()
    const path = await house.draft(LIST)
    const both = await Promise.all([
      house.post(`${path}/start`, start),
      house.post(`${path}/start`, start),
    ])
    const later = [await house.post(`${path}/start`, start), await house.get(path)]
    const [job, ...more] = await jobs(house)
    expect(more).toEqual([])
    const places = [...both, ...later].map(({ headers }) => headers.get('Location'))
    expect(new Set(places)).toEqual(new Set([`/lists/${job?.id}`]))
  })

  test('is done though the browser goes away, as it does at a double click', async () => {
    const house = await listsHouse()
    const path = await house.draft(LIST)
    const leaving = new AbortController()
    const body = new URLSearchParams({ ...start, _csrf: await house.csrf() })
    const sent = house.fetch(`${path}/start`, { method: 'POST', body, signal: leaving.signal })
    leaving.abort()
    const { status, headers } = await sent
    const [job] = await jobs(house)
    expect([status, headers.get('Location')]).toEqual([303, `/lists/${job?.id}`])
  })

  test('is refused without the token', async () => {
    const house = await listsHouse()
    const path = await house.draft(LIST)
    expect((await house.post(`${path}/start`, { ...start, _csrf: 'wrong' })).status).toBe(403)
    expect((await house.post(`${path}/discard`, { _csrf: 'wrong' })).status).toBe(403)
    expect(await jobs(house)).toEqual([])
    expect(house.left()).toHaveLength(2)
  })
})

describe('a draft is not there', () => {
  test('for another account', async () => {
    const house = await listsHouse()
    const path = await house.draft(LIST)
    await house.asAnother()
    const answers = [
      await house.get(path),
      await house.post(`${path}/start`, { column: '2' }),
      await house.post(`${path}/discard`),
    ]
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404])
    expect(answers[0]?.text).toContain('This list is not here any more')
    expect(answers[0]?.text).not.toContain('ann@a.test')
    expect(house.left()).toHaveLength(2)
    expect(await jobs(house)).toEqual([])
  })

  test('when it was discarded', async () => {
    const { draft, post, get, left } = await listsHouse()
    const path = await draft(LIST)
    expect((await post(`${path}/discard`)).headers.get('Location')).toBe('/lists')
    expect(left()).toEqual([])
    expect((await get('/lists')).text).toContain('The list is discarded')
    expect((await get(path)).status).toBe(404)
  })

  test('after an hour', async () => {
    const { draft, get, clock } = await listsHouse()
    const path = await draft(LIST)
    await clock.advance(HOUR)
    expect((await get(path)).status).toBe(404)
  })
})
