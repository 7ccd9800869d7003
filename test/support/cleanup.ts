const tasks: (() => unknown)[] = []

/**
 * Runs `task` when the running test file ends. Hooks at the top of a fixture module would run for
 * the first file only, because files share the loaded modules.
 */
export const onFileFinished = (task: () => unknown): void => void tasks.push(task)

/** Runs the registered tasks, the last one first. */
export async function finishFile(): Promise<void> {
  for (const task of tasks.splice(0).reverse()) await task()
}
