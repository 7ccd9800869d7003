import { expect, test } from 'vitest'
import { confirm } from '../../src/cli/confirm.ts'
import { memoryContext, runEv } from '../support/cli.ts'
import { homeWith, read } from '../support/cli-webhooks.ts'

const ask = (stdin: string, columns?: number) => {
  const { context } = memoryContext({
    home: '/',
    stdin,
    ...(columns === undefined ? {} : { columns }),
  })
  return { context, answer: confirm(context, {}, 'delete job_a') }
}

test.each(['y\n', 'Yes\n'])('%j on a terminal confirms', async stdin => {
  const { context, answer } = ask(stdin, 80)
  await answer
  expect(context.stderr.text).toBe('This will delete job_a. Continue? [y/N] ')
})

test('the question is wrapped at the width of the terminal', async () => {
  const { context, answer } = ask('y\n', 30)
  await answer
  expect(context.stderr.text).toBe('This will delete job_a.\nContinue? [y/N] ')
})

test.each(['n\n', '\n', '', 'yeah\n'])('%j on a terminal does not', async stdin => {
  await expect(ask(stdin, 80).answer).rejects.toMatchObject({
    code: 'interrupted',
    message: 'Not confirmed. Nothing was changed.',
  })
})

test('without a terminal --yes is required, and nothing is asked', async () => {
  const { context, answer } = ask('y\n')
  await expect(answer).rejects.toMatchObject({
    code: 'usage',
    message: 'This would delete job_a. To confirm, add --yes.',
  })
  expect(context.stderr.text).toBe('')
  await confirm(context, { yes: true }, 'delete job_a')
})

test.each([
  ['purge --all', 'delete all finished lists, history and cached answers'],
  ['purge --address ann@x.example', 'erase ann@x.example from lists and history'],
])('ev %s asks', async (line, action) => {
  const home = await homeWith('acc_a')
  const args = [...line.split(' '), '--data-dir', 'data']
  expect(await runEv(args, { home })).toMatchObject({
    code: 64,
    stdout: '',
    stderr: `error: This would ${action}. To confirm, add --yes.\n`,
  })
  const asked = await runEv(args, { home, columns: 80, stdin: 'y\n' })
  expect(asked).toMatchObject({ code: 0, stderr: `This will ${action}. Continue? [y/N] ` })
  expect(await runEv([...args, '--dry-run'], { home })).toMatchObject({ code: 0, stderr: '' })
})

test('ev keys revoke and ev webhooks delete change nothing without a confirmation', async () => {
  const home = await homeWith('acc_a')
  const { id } = await read(home, 'keys', 'create', '--name', 'CI')
  const url = 'https://93.184.215.14/hook'
  const webhook = await read(home, 'webhooks', 'create', '--url', url, '--events', '*')
  const data = ['--data-dir', 'data']
  const revoked = await runEv(['keys', 'revoke', id, '--force', ...data], { home })
  expect(revoked.stderr).toBe(`error: This would revoke ${id} "CI". To confirm, add --yes.\n`)
  const removed = await runEv(['webhooks', 'delete', webhook.id, ...data], {
    home,
    columns: 80,
    stdin: 'n\n',
  })
  expect(removed.code).toBe(130)
  expect(removed.stderr).toContain(`This will delete webhook ${webhook.id} to ${url}.`)
  expect(await read(home, 'keys')).toHaveLength(1)
  expect(await read(home, 'webhooks')).toHaveLength(1)
})
