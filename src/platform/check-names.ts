/**
 * Domains of large mailbox providers that have had MX records for more than ten years. A working
 * resolver finds them.
 */
export const CHECK_NAMES: readonly string[] = ['gmail.com', 'outlook.com', 'yahoo.com']
