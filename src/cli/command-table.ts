import type { Command } from 'commander'
import type { CliContext, SetExitCode } from './context.ts'

/** Adds the options, arguments and subcommands of a command. */
type Define = (command: Command, context: CliContext, setExitCode: SetExitCode) => void

type CommandEntry = {
  readonly name: string
  readonly description: string
  /** Loads the file of the command; a start loads only those of the commands that it names. */
  readonly load: () => Promise<Define>
}

/** All commands below their headings in help. */
export const COMMAND_GROUPS: readonly {
  readonly title: string
  readonly commands: readonly CommandEntry[]
}[] = [
  {
    title: 'Verify:',
    commands: [
      {
        name: 'verify',
        description: 'verify one or more addresses',
        load: async () => (await import('./verify.ts')).defineVerify,
      },
      {
        name: 'bulk',
        description: 'verify a list, such as a CSV file or an Excel workbook',
        load: async () => (await import('./bulk/bulk.ts')).defineBulk,
      },
      {
        name: 'measure',
        description: 'measure the accuracy of ev and other tools on addresses with known truth',
        load: async () => (await import('./measure/measure.ts')).defineMeasure,
      },
      {
        name: 'jobs',
        description: 'manage jobs: show, resume, finish, cancel, delete, share, re-verify',
        load: async () => (await import('./jobs/jobs.ts')).defineJobs,
      },
    ],
  },
  {
    title: 'Service:',
    commands: [
      {
        name: 'serve',
        description: 'run the HTTP service with its API and dashboard',
        load: async () => (await import('./serve/serve.ts')).defineServe,
      },
      {
        name: 'worker',
        description: 'run a worker for a shared database',
        load: async () => (await import('./serve/worker.ts')).defineWorker,
      },
      {
        name: 'accounts',
        description: 'manage accounts of the service and their plans',
        load: async () => (await import('./accounts.ts')).defineAccounts,
      },
      {
        name: 'people',
        description: 'manage people who sign in to the dashboard',
        load: async () => (await import('./people.ts')).definePeople,
      },
      {
        name: 'keys',
        description: 'manage keys of the HTTP API',
        load: async () => (await import('./keys.ts')).defineKeys,
      },
      {
        name: 'webhooks',
        description: 'manage webhook endpoints and deliveries',
        load: async () => (await import('./webhooks/webhooks.ts')).defineWebhooks,
      },
      {
        name: 'schedules',
        description: 're-verify lists of the service on a schedule',
        load: async () => (await import('./schedules.ts')).defineSchedules,
      },
      {
        name: 'feedback',
        description: 'import bounces and deliveries, and compare them with verdicts',
        load: async () => (await import('./feedback.ts')).defineFeedback,
      },
      {
        name: 'audit',
        description: 'show the audit log',
        load: async () => (await import('./audit.ts')).defineAudit,
      },
    ],
  },
  {
    title: 'Set up and maintain:',
    commands: [
      {
        name: 'doctor',
        description: 'check DNS, port 25, HELO, SPF and blocklists of this machine',
        load: async () => (await import('./doctor.ts')).defineDoctor,
      },
      {
        name: 'config',
        description: 'show every setting with its value and source',
        load: async () => (await import('./config-command.ts')).defineConfig,
      },
      {
        name: 'lists',
        description: 'update files of custom lists, such as disposable domains',
        load: async () => (await import('./lists.ts')).defineLists,
      },
      {
        name: 'backup',
        description: 'back up the database while it is in use, and verify the copy',
        load: async () => (await import('./backup.ts')).defineBackup,
      },
      {
        name: 'restore',
        description: 'restore the database, and its secret, from a backup',
        load: async () => (await import('./restore.ts')).defineRestore,
      },
      {
        name: 'migrate',
        description: 'copy a data directory to a PostgreSQL database',
        load: async () => (await import('./migrate.ts')).defineMigrate,
      },
      {
        name: 'purge',
        description: 'delete old lists, history, cached answers and leftover files',
        load: async () => (await import('./purge.ts')).definePurge,
      },
    ],
  },
  {
    title: 'Tools:',
    commands: [
      {
        name: 'mcp',
        description: 'run a Model Context Protocol server on stdin and stdout',
        load: async () => (await import('./mcp.ts')).defineMcp,
      },
      {
        name: 'completion',
        description: 'print the completion script for a shell',
        load: async () => (await import('./completion/completion.ts')).defineCompletion,
      },
      {
        name: 'simulate',
        description: 'simulate mail servers and DNS on this machine, for tests',
        load: async () => (await import('./simulate.ts')).defineSimulate,
      },
      {
        name: 'version',
        description: 'print the versions of ev and Node',
        load: async () => (await import('./version.ts')).defineVersion,
      },
    ],
  },
]

/** The names of all commands, in the order of help. */
export const COMMAND_NAMES: readonly string[] = COMMAND_GROUPS.flatMap(({ commands }) =>
  commands.map(({ name }) => name),
)
