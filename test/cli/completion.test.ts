import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { program } from '../../src/cli/program.ts'
import { emptyFolder, memoryContext, runEv } from '../support/cli.ts'

test.each(['bash', 'zsh', 'fish'])('%s completes every command and option', async shell => {
  const ran = await runEv(['completion', shell], { home: emptyFolder(), offline: true })
  expect(ran).toMatchObject({ code: 0, stderr: '' })
  for (const command of program(memoryContext({ home: tmpdir() }).context, () => {}).commands) {
    expect(ran.stdout).toContain(command.name())
    for (const { long } of command.options.filter(option => !option.hidden)) {
      expect(ran.stdout).toContain(shell === 'fish' ? ` -l ${long?.slice(2)} ` : long)
    }
  }
})

test('lists the shells after an unknown one', async () => {
  const ran = await runEv(['completion', 'csh'], { home: emptyFolder() })
  expect(ran).toMatchObject({ code: 64, stdout: '' })
  expect(ran.stderr).toMatch(/"shell" is "csh"; it takes one of bash, zsh, fish/)
})
