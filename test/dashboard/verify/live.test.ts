import { describe, expect, test } from 'vitest'
import { createTestDashboard } from '../../support/dashboard.ts'
import { toRecipients } from '../../support/engine.ts'

type Change = { readonly html?: string; readonly line?: string; readonly over?: string }

async function stepsOf(
  services: Awaited<ReturnType<typeof createTestDashboard>>,
  fields: Record<string, string>,
): Promise<Change[]> {
  const body = new URLSearchParams({ _csrf: await services.csrf(), ...fields })
  const answer = await services.fetch('/verify/steps', { method: 'POST', body })
  expect(answer.headers.get('Content-Type')).toContain('application/x-ndjson')
  const text = await services.settled(answer.text())
  expect(text.endsWith('\n')).toBe(true)
  return text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Change)
}

const nameOf = ({ html, line }: Change) =>
  html === undefined
    ? (line ?? 'over')
    : /id="(?:step-)?([\w-]+)"\s*(?:class="is-(\w+)")?/.exec(html)?.slice(1).join(' ')

describe('the live steps', () => {
  test('start with all parts, go on part by part and line by line, and end with the announcement', async () => {
    const changes = await stepsOf(await createTestDashboard(), { email: 'ann@a.test' })
    expect(changes.slice(0, 6).map(nameOf)).toEqual([
      ...['verdict running', 'steps-now ', 'syntax now', 'domain ', 'servers ', 'dialogue '],
    ])
    const rest = changes.slice(6)
    const lines = rest.filter(({ line }) => line !== undefined).map(({ line }) => line)
    expect(lines).toContain('C: RCPT TO:<ann@a.test>')
    expect(rest.filter(({ line }) => line === undefined).map(nameOf)).toEqual([
      ...['verdict running', 'steps-now ', 'syntax ok', 'domain now'],
      ...['verdict running', 'steps-now ', 'domain ok', 'servers now'],
      ...['verdict running', 'steps-now ', 'servers ok', 'dialogue now'],
      ...['verdict deliverable', 'steps-now ', 'dialogue ok', 'over'],
    ])
    expect(changes.at(-1)).toEqual({
      over: 'ann@a.test is deliverable. The mail server accepts mail for this address.',
    })
  })

  test('end as the page without JavaScript does', async () => {
    const services = await createTestDashboard()
    const changes = await stepsOf(services, { email: 'nobody@a.test', again: 'on' })
    const { text } = await services.post('/verify', { email: 'nobody@a.test', again: 'on' })
    const last = changes.findLast(({ html }) => html?.includes('id="step-domain"'))?.html ?? 'none'
    expect(text).toContain(last)
  })

  test('show the error of the API', async () => {
    const services = await createTestDashboard({ plan: 'free' })
    for (let n = 0; n < 11; n++) await services.post('/verify', { email: 'ann@a.test' })
    const changes = await stepsOf(services, { email: 'ann@a.test' })
    expect(changes.at(-1)?.over).toMatch(/limit/i)
    expect(changes.findLast(one => nameOf(one)?.startsWith('verdict'))?.html).toContain(
      'role="alert"',
    )
  })

  test('contain only our markup and the text of lines', async () => {
    const evil = '<img src=x onerror=alert(1)>'
    const services = await createTestDashboard({
      engine: { script: toRecipients(() => `550 5.1.1 ${evil} is unknown`) },
    })
    const changes = await stepsOf(services, { email: `"${evil}"@a.test` })
    expect(changes.map(({ html = '' }) => html).join('')).not.toContain('<img')
    expect(changes.some(({ line }) => line?.startsWith(`S: 550 5.1.1 ${evil}`))).toBe(true)
  })

  test('are rejected for a form of another session', async () => {
    const services = await createTestDashboard()
    const body = new URLSearchParams({ _csrf: 'wrong', email: 'ann@a.test' })
    const answer = await services.fetch('/verify/steps', { method: 'POST', body })
    expect(answer.status).toBe(403)
    expect(services.mx.sessions).toHaveLength(0)
  })
})
