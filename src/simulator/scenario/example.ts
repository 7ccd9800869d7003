import { fileURLToPath } from 'node:url'

/** A scenario that shows what there is, for people to start from. */
export const EXAMPLE_FILE = fileURLToPath(new URL('./example.json', import.meta.url))
