import { CommanderError } from 'commander'
import { EXIT_CODES, reportError, watchOutput } from './exit.ts'
import { program } from './program.ts'

const debug = process.argv.includes('--debug')
watchOutput(debug)
try {
  await program().parseAsync()
} catch (error) {
  // Commander has said its piece; help and version are no errors.
  if (error instanceof CommanderError)
    process.exitCode = error.exitCode === 0 ? 0 : EXIT_CODES.usage
  else process.exitCode = reportError(error, debug)
}
