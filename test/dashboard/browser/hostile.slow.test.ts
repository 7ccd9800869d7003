import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testAuthority } from '../../support/certificate.ts'
import { type Receiver, startReceiver } from '../../support/http-receiver.ts'
import { stage, type Visitor } from './browser.ts'

/** Escapes from an attribute, a comment and a script, and runs in each context of a page. */
const EVIL = `'"--></script><script>ran=1</script><img src=x onerror=ran=2><i hx-get=/sessions hx-trigger=load hx-on:click=ran=3>{{x}}</i>`
/** Key names are limited to 100 characters. */
const SHORT_EVIL = EVIL.slice(0, EVIL.indexOf('<i '))
/** The variant that is a valid address. */
const EVIL_ADDRESS = '"<img/src=x onerror=ran=4>"@evil.test'

const set = stage({
  args: ['--webhook-allow-ranges', '127.0.0.0/8', '--webhook-ca-file', 'ca.pem'],
  scenario: {
    domains: {
      'evil.test': { mx: [[10, 'mx.evil.test']] },
      'hook.example': { a: ['127.0.0.1'] },
    },
    hosts: {
      'mx.evil.test': {
        behavior: 'polite',
        rules: [
          { on: 'CONNECT', reply: `220 mx.evil.test ${EVIL}` },
          { on: 'EHLO', raw: `250-mx.evil.test ${EVIL}\r\n250-X-${EVIL}\r\n250 PIPELINING\r\n` },
          { on: 'RCPT', to: '*', reply: `550 5.1.1 ${EVIL}` },
        ],
      },
    },
  },
})
writeFileSync(join(set.home, 'ca.pem'), testAuthority().cert)

let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver()
  receiver.answer({ status: 500, headers: { 'x-why': EVIL }, body: EVIL })
})
afterAll(() => receiver.close())

async function api<T>(path: string, body?: object | FormData): Promise<T> {
  const isForm = body instanceof FormData
  const answer = await fetch(`${set.url}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      Authorization: `Bearer ${set.key}`,
      ...(!isForm && body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
  })
  if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`)
  return answer.json() as Promise<T>
}

/** Stores untrusted text wherever a user can; returns the paths of pages that show it. */
async function plant(): Promise<string[]> {
  const body = new URLSearchParams({ key: set.key })
  await fetch(`${set.url}/sign-in`, { method: 'POST', body, headers: { 'User-Agent': EVIL } })
  const key = await api<{ data: { id: string } }>('/v1/keys', {
    name: SHORT_EVIL,
    scopes: ['jobs:read'],
  })
  const url = `${receiver.url}?${encodeURIComponent(EVIL)}`
  const webhook = await api<{ data: { id: string } }>('/v1/webhooks', {
    url,
    description: EVIL,
    events: ['batch.completed'],
  })
  const tested = await api<{ data: { delivery_id: string } }>(
    `/v1/webhooks/${webhook.data.id}/test`,
    {},
  )
  const job = await listed()
  const delivery = `/webhooks/${webhook.data.id}/deliveries/${tested.data.delivery_id}`
  return [
    ...['/sessions', '/lists', `/lists/${job}`, `/lists/${job}/charts`, '/keys'],
    ...[`/keys/${key.data.id}`, '/webhooks', `/webhooks/${webhook.data.id}`, delivery],
    ...[`/webhooks/${webhook.data.id}?tested=${tested.data.delivery_id}`, '/usage', '/verify'],
    ...REFLECTED.map(path => path.replace('JOB', job).replace('WEBHOOK', webhook.data.id)),
  ]
}

/** Paths that contain untrusted text. */
const REFLECTED = [
  ...['/verify?email=EVIL', '/lists?status=EVIL&cursor=EVIL', '/lists/EVIL', '/keys/EVIL'],
  ...['/lists/JOB?search=EVIL', '/lists/JOB?row=EVIL&reason=EVIL', '/lists/JOB?cursor=EVIL'],
  ...[
    '/lists/JOB?open=1',
    '/lists/JOB?open=2',
    '/lists/JOB?open=EVIL',
    '/lists/JOB?sort=EVIL&order=EVIL',
  ],
  ...['/webhooks/EVIL', '/webhooks/WEBHOOK?status=EVIL', '/webhooks/WEBHOOK?cursor=EVIL&event=x'],
  ...['/webhooks/WEBHOOK/deliveries/EVIL', '/usage?search=EVIL&from=EVIL', '/usage?cursor=EVIL'],
  ...['/usage?search=evil.test', '/sign-in?next=EVIL', '/welcome/EVIL'],
  ...['/usage?class=EVIL&period=EVIL', '/lists/JOB/download?format=EVIL&class=EVIL'],
].map(path => path.replaceAll('EVIL', encodeURIComponent(EVIL)))

const cell = (text: string) => `"${text.replaceAll('"', '""')}"`
const LIST = `${cell(EVIL)},email\r\n${cell(EVIL)},${cell(EVIL_ADDRESS)}\r\nx,user1@evil.test\r\ny,${cell(EVIL)}\r\n`

/** Creates a completed list. */
async function listed(): Promise<string> {
  const form = new FormData()
  form.set('name', EVIL)
  form.set('file', new Blob([LIST]), 'list.csv')
  const { job_id } = await api<{ job_id: string }>('/v1/verify/file', form)
  const status = async () => (await api<{ status: string }>(`/v1/jobs/${job_id}`)).status
  await expect.poll(status).toBe('completed')
  return job_id
}

/** Removes the headers that would block an injected script. */
async function withoutPolicy({ context }: Visitor): Promise<void> {
  await context.route(
    ({ pathname }) => !/\/(events|steps)$/.test(pathname),
    async route => {
      const response = await route.fetch({ maxRedirects: 0 })
      const { 'content-security-policy': _, ...headers } = response.headers()
      await route.fulfill({ response, headers })
    },
  )
}

/** Evaluates to the effects of untrusted text in the current page. */
const DONE = `
  [typeof ran === 'undefined' ? [] : ['a script ran: ' + ran],
   ...document.querySelectorAll('img, i, iframe, object, embed, base, script:not([src]), a[href^="javascript:" i]')]
    .flat().map(one => typeof one === 'string' ? one : one.outerHTML)
    .concat([...document.querySelectorAll('*')].flatMap(one =>
      [...one.attributes].filter(({ name }) => /^on|^hx-on/.test(name)).map(({ name }) => one.tagName + ' ' + name)))`

test('untrusted text is inert on every page, even without the Content-Security-Policy', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await withoutPolicy(visitor)
  await visitor.go('/verify')
  const paths = await plant()
  let shown = 0
  for (const path of paths) {
    await visitor.go(path).catch(error => {
      if (!/Download is starting/.test(String(error))) throw error
    })
    expect([path, await page.evaluate(DONE)]).toEqual([path, []])
    if (await page.evaluate(`document.body.innerHTML.includes('&lt;img')`)) shown++
  }
  // Ensures that the untrusted text was rendered.
  expect(shown).toBeGreaterThan(14)
})

test('untrusted text is inert in a live verification, in a preview and in filtered rows', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await withoutPolicy(visitor)
  await visitor.go('/verify')
  for (const address of [EVIL, EVIL_ADDRESS, 'user2@evil.test']) {
    await page.getByLabel('Email address').fill(address)
    await page.getByRole('button', { name: 'Verify', exact: true }).click()
    await page.locator('#verdict:not(.is-running)').getByText(address, { exact: true }).waitFor()
    expect([address, await page.evaluate(DONE)]).toEqual([address, []])
  }
  expect(await page.locator('#step-dialogue pre').textContent()).toContain('<script>ran=1')
  await visitor.go('/lists/new')
  const buffer = Buffer.from(LIST)
  await page.getByLabel('File').setInputFiles({ name: `${EVIL}.csv`, mimeType: 'text/csv', buffer })
  await page.getByRole('columnheader', { name: '<script>ran=1' }).waitFor()
  expect(await page.evaluate(DONE)).toEqual([])
  await visitor.go(`/lists/${await listed()}`)
  await page.getByLabel('Search addresses').fill(EVIL)
  await page.keyboard.press('Enter')
  await page.locator('#rows').getByText('</script>').first().waitFor()
  expect(await page.evaluate(DONE)).toEqual([])
})
