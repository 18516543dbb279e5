//! Functions with a variable number of arguments: each is a jump to its half in C, with all
//! arguments in their places.

use std::arch::naked_asm;

unsafe extern "C" {
    fn linerate_iperf_err();
    fn linerate_iperf_errexit();
    fn linerate_iperf_got_sigend();
    fn linerate_iperf_printf();
}

/// Exports `name` as a jump to `target`. A symbol of a library in C is not exported itself.
macro_rules! jump {
    ($($name:ident => $target:ident;)*) => {
        $(
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            extern "C" fn $name() {
                #[cfg(target_arch = "x86_64")]
                naked_asm!("jmp {}", sym $target);
                #[cfg(target_arch = "aarch64")]
                naked_asm!("b {}", sym $target);
            }
        )*
    };
}

jump! {
    iperf_err => linerate_iperf_err;
    // Both end the process because their caller requests it.
    iperf_errexit => linerate_iperf_errexit;
    iperf_got_sigend => linerate_iperf_got_sigend;
    iperf_printf => linerate_iperf_printf;
}
