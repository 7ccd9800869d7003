import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { program } from '../../src/cli/run.ts'
import { emptyFolder, memoryContext, runEv } from '../support/cli.ts'

test.each(['bash', 'zsh', 'fish', 'powershell'])(
  '%s completes every command and option',
  async shell => {
    const ran = await runEv(['completion', shell], { home: emptyFolder(), offline: true })
    expect(ran).toMatchObject({ code: 0, stderr: '' })
    for (const command of program(memoryContext({ home: tmpdir() }).context, () => {}).commands) {
      expect(ran.stdout).toContain(command.name())
      for (const { long } of command.options.filter(option => !option.hidden)) {
        expect(ran.stdout).toContain(shell === 'fish' ? ` -l ${long?.slice(2)} ` : long)
      }
    }
  },
)

test('lists the shells after an unknown one', async () => {
  const ran = await runEv(['completion', 'csh'], { home: emptyFolder() })
  expect(ran).toMatchObject({ code: 64, stdout: '' })
  expect(ran.stderr).toMatch(/"shell" is "csh"; it takes one of bash, zsh, fish, powershell/)
})

test('the PowerShell script has the words of each option and argument, quoted', async () => {
  const { stdout } = await runEv(['completion', 'powershell'], { home: emptyFolder() })
  expect(stdout).toMatch(
    /^ {4}'ev bulk' = @\{.* '--format' = @\('csv', 'xlsx', 'ndjson', 'json'\)/m,
  )
  expect(stdout).toMatch(/^ {4}'ev jobs' = @\{.* Words = @\('list', 'show', 'resume', /m)
  expect(stdout).toMatch(/^ {4}'ev completion' = @\{.* Words = @\('bash', 'zsh', 'fish', 'p/m)
  const brackets = (open: string, close: string) =>
    stdout.split(open).length - stdout.split(close).length
  expect([brackets('{', '}'), brackets('(', ')')]).toEqual([0, 0])
})
