//! Error numbers that callers decide by (errno(3)).

pub use libc::{
    EAFNOSUPPORT, ECONNREFUSED, EINVAL, EIO, EMFILE, EMSGSIZE, ENFILE, ENOBUFS, ENOMEM, ENOPROTOOPT, ENOSYS,
    EOPNOTSUPP, ETIMEDOUT,
};
